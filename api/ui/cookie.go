package ui

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// cookieName returns the name of a cookie of a request: with the port by which the browser asks, since cookies ignore
// ports, and where only TLS may set it with the prefix that says so.
func cookieName(r *http.Request, name string, secure bool) string {
	name = strings.TrimSuffix("taskledger-"+name+"-"+portOf(r), "-")
	if secure {
		return "__Secure-" + name
	}
	return name
}

// portOf returns the port that the browser sees, which is another one than that of the listener where ports are mapped.
// A host without one has that of the listener; "" = it is a socket.
func portOf(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			return port
		}
	}
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	_, port, _ := net.SplitHostPort(at.String())
	return port
}

// secure reports whether the browser asks by TLS, which a proxy may end. A proxy that asks under a name of its own
// passes the origin of forms alone.
func (u *UI) secure(r *http.Request) bool {
	return r.TLS != nil || slices.ContainsFunc(u.cfg.Origins, func(origin string) bool {
		at, err := url.Parse(origin)
		asked := r.Header.Get("Origin") == origin || err == nil && strings.EqualFold(at.Host, r.Host)
		return err == nil && at.Scheme == "https" && asked
	})
}

// cookie returns the value of a cookie of ours. One that is there more than once has none: another server of this host
// may have set it. What asks for a page behind a proxy may show nothing of its TLS: there the prefix of the cookie
// does.
func (u *UI) cookie(r *http.Request, name string) string {
	secure := u.secure(r)
	all := r.CookiesNamed(cookieName(r, name, secure || len(u.cfg.Origins) > 0))
	if len(all) == 0 && !secure {
		all = r.CookiesNamed(cookieName(r, name, false))
	}
	if len(all) != 1 {
		return ""
	}
	return all[0].Value
}

// setCookie sets a cookie of ours for as many seconds, 0 for as long as the browser runs; below 0 it is removed.
func (u *UI) setCookie(h http.Header, r *http.Request, name, value string, seconds int) {
	secure := u.secure(r)
	c := http.Cookie{
		Name:     cookieName(r, name, secure),
		Value:    value,
		Path:     strings.TrimSuffix(Root, "/"),
		MaxAge:   seconds,
		HttpOnly: true,
		Secure:   secure,
		SameSite: http.SameSiteLaxMode,
	}
	h.Add("Set-Cookie", c.String())
}

// secretOf returns the secret with which the session of a request began, "" for none. A page that refreshes itself does
// not use the session, which would otherwise last for as long as a tab is open.
func (u *UI) secretOf(r *http.Request) string {
	cookie := u.cookie(r, sessionCookie)
	switch {
	case cookie == "":
		return ""
	case r.Header.Get("HX-Request") == "true" && r.Header.Get("HX-Source") == liveSource:
		return u.sessions.Look(cookie)
	}
	return u.sessions.Secret(cookie)
}

// liveSource names the part of a page that is asked for anew by itself, as htmx tells it.
const liveSource = "div#live"

// The names of cookies.
const (
	sessionCookie = "session"
	zoneCookie    = "zone"
)
