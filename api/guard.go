package api

import (
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"taskledger/api/doors"
	"taskledger/api/measured"
	"taskledger/api/problem"
)

// always holds headers of every answer. The lists are shared, and never changed.
var always = http.Header{
	"X-Content-Type-Options":       {"nosniff"},
	"Cache-Control":                {"no-store"},
	"Content-Security-Policy":      {"default-src 'none'; frame-ancestors 'none'"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
}

// ServeHTTP answers a request, or refuses it before any route sees it.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer doors.Of(r).Serving()()
	a.open.Add(1)
	defer a.open.Add(-1)
	if a.watch != nil {
		watched, began, whole := &measured.Writer{ResponseWriter: w}, time.Now(), false
		defer func() {
			watched.Request.Took = time.Since(began)
			if !whole { // net/http cuts the connection
				watched.Request.Status = 0
			}
			a.watch.Answered(watched.Request)
		}()
		a.answer(watched, r)
		whole = true
		return
	}
	a.answer(w, r)
}

// State counts what is under way.
func (a *API) State() measured.State {
	return measured.State{
		Requests: int(a.open.Load()),
		Streams:  a.shared.callers.streams(),
		Waits:    a.shared.watcher.waits(),
	}
}

func (a *API) answer(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w) // a connection without deadlines is one of a test
	_ = control.SetWriteDeadline(time.Now().Add(answerWithin + writeWithin))
	// Without a body, net/http reads the next request already, and this deadline would cancel the context of this one.
	if r.ContentLength != 0 {
		_ = control.SetReadDeadline(time.Now().Add(answerWithin))
	}
	h := w.Header()
	maps.Copy(h, always)
	if below := pathBelow(r); below != "" {
		r.URL.Path = below + r.URL.Path
		if r.URL.RawPath != "" {
			r.URL.RawPath = below + r.URL.RawPath
		}
		a.shared.refusals.hideSecret(r)
	}
	if r.TLS != nil {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	refuse := func(is problem.Type, format string, args ...any) {
		a.shared.refusals.refuse(w, r, problem.New(is, format, args...))
	}
	switch {
	case !doors.HostAllowed(r.Host, a.hosts):
		refuse(problem.Forbidden,
			"host %.100q is not one of this server's names: a page elsewhere may have led here", r.Host)
	case !a.sameOrigin(r) && !a.opensPage(r):
		refuse(problem.Forbidden, "a page of another origin asks")
	case !a.tellsItsPage(r):
		refuse(
			problem.Forbidden,
			"a cookie alone changes nothing: want the header Origin or Sec-Fetch-Site, which a browser sends with a form",
		)
	case !isClean(a.inShape(r.URL)):
		refuse(problem.NotFound, "the path is not in its shortest form")
	default:
		a.mux.ServeHTTP(w, r)
	}
}

// inShape returns the part of a URL that has to be in its shortest form. A front with an error format of its own has
// names in which any character may be, if it is encoded.
func (a *API) inShape(u *url.URL) string {
	if a.shared.refusals.formatOf(u.Path) != nil {
		return u.EscapedPath()
	}
	return u.Path
}

// isClean reports whether the mux serves a path: another one would be redirected.
func isClean(p string) bool {
	bare := strings.TrimSuffix(p, "/")
	return p == "/" || len(bare) > 1 && bare[0] == '/' && path.Clean(p) == bare
}

// opensPage reports whether a browser opens one of our pages in a tab, as it does for a link on another site.
func (a *API) opensPage(r *http.Request) bool {
	front := a.shared.refusals.formatOf(r.URL.Path)
	return front != nil && front.Pages && (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" &&
		r.Header.Get("Origin") == ""
}

// tellsItsPage reports whether a change by a caller whom only a cookie names says which page asks for it. A browser
// adds the cookie whatever page asks, so one that tells neither its origin nor its site may have been led here.
func (a *API) tellsItsPage(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.Header.Get("Origin") != "" ||
		r.Header.Get("Sec-Fetch-Site") != "" {
		return true
	}
	return !a.shared.refusals.byCookie(r)
}

// sameOrigin reports whether a request comes from no browser, or from a page of this server.
func (a *API) sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	if slices.Contains(a.origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host && (u.Scheme == "https") == (r.TLS != nil)
}
