package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
)

// Routes returns the routes of all pages, for api.Config.
func (u *UI) Routes() []api.Route {
	all := slices.Concat(
		u.staticRoutes(),
		u.loginRoutes(),
		u.overviewRoutes(),
		u.tasksRoutes(),
		u.taskRoutes(),
		u.actionRoutes(),
		u.jobRoutes(),
		u.logRoutes(),
		u.stateRoutes(),
		u.submitRoutes(),
		u.behaviorsRoutes(),
		u.schedulesRoutes(),
		u.collectionsRoutes(),
		u.storesRoutes(),
		u.workRoutes(),
		u.nodesRoutes(),
		u.settingsRoutes(),
		u.auditRoutes(),
	)
	for i := range all {
		if all[i].Page == nil {
			all[i].Page = policy
		}
	}
	return all
}

// policy lets a page load what the node serves, and nothing else. A browser keeps a page, and asks each time whether it
// has changed.
var policy = &api.PagePolicy{
	Content: "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	Referrer: "same-origin",
	Cache:    "private, no-cache",
}

// ErrorFormat returns the form of errors below Root, for api.Config: pages, for people who have logged in.
func (u *UI) ErrorFormat() api.ErrorFormat {
	return api.ErrorFormat{
		Path:    Root,
		Type:    "text/html; charset=utf-8",
		Out:     "",
		Pages:   true,
		Page:    policy,
		Refuse:  u.refuse,
		Session: u.secretOf,
	}
}

// refuse answers with a page that says what is wrong. Whoever opens a page without a session is asked to log in.
func (u *UI) refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	if p.Type == problem.Unauthorized && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		w.Header().Set("HX-Refresh", "true") // a part of a page that is asked for anew is no place for a login
		w.Header().Set("Location", loginFor(r.URL))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	f := u.frameOf(r, u.callerOf(r), p.Title)
	page, err := render("problem", f, p)
	if err != nil {
		page = []byte(p.Error())
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.Status)
	_, _ = w.Write(page) // it fails when the browser has gone
}

// callerOf returns the token of a request; nil = nobody has logged in.
func (u *UI) callerOf(r *http.Request) *token.Token {
	secret := cmp.Or(api.Secret(r), u.secretOf(r))
	if secret == "" {
		return nil
	}
	return u.cfg.Tokens.Find(secret)
}

// loginFor returns the address of the login that leads back to a page.
func loginFor(page *url.URL) string {
	to := Root + "login"
	if page.Path != Root {
		to += "?" + url.Values{"next": {page.RequestURI()}}.Encode()
	}
	return to
}
