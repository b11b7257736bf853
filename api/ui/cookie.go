package ui

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// cookieName returns the name of a cookie of a request: with the port of the connection, since cookies ignore ports, and
// with the prefix that lets only TLS set it.
func (u *UI) cookieName(r *http.Request, name string) string {
	port := ""
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		_, port, _ = net.SplitHostPort(at.String()) // a socket has none
	}
	name = strings.TrimSuffix("taskledger-"+name+"-"+port, "-")
	if u.secure(r) {
		return "__Secure-" + name
	}
	return name
}

// secure reports whether the browser asks by TLS, which a proxy may end.
func (u *UI) secure(r *http.Request) bool {
	return r.TLS != nil || slices.ContainsFunc(u.cfg.Origins, func(origin string) bool {
		at, err := url.Parse(origin)
		return err == nil && strings.EqualFold(at.Host, r.Host)
	})
}

// cookie returns the value of a cookie of ours. One that is there more than once has none: another server of this host
// may have set it.
func (u *UI) cookie(r *http.Request, name string) string {
	all := r.CookiesNamed(u.cookieName(r, name))
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// setCookie sets a cookie of ours for as many seconds, 0 for as long as the browser runs; below 0 it is removed.
func (u *UI) setCookie(h http.Header, r *http.Request, name, value string, seconds int) {
	c := http.Cookie{
		Name:     u.cookieName(r, name),
		Value:    value,
		Path:     strings.TrimSuffix(Root, "/"),
		MaxAge:   seconds,
		HttpOnly: true,
		Secure:   u.secure(r),
		SameSite: http.SameSiteLaxMode,
	}
	h.Add("Set-Cookie", c.String())
}

// secretOf returns the secret with which the session of a request began, "" for none.
func (u *UI) secretOf(r *http.Request) string {
	cookie := u.cookie(r, sessionCookie)
	if cookie == "" {
		return ""
	}
	return u.sessions.Secret(cookie)
}

// The names of cookies.
const (
	sessionCookie = "session"
	zoneCookie    = "zone"
)
