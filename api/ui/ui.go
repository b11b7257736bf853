package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/ui/jobs"
	"taskledger/api/ui/sessions"
	"taskledger/api/ui/trend"
)

// Root begins the paths of the dashboard.
const Root = "/ui/"

// Config holds the parts of a dashboard.
type Config struct {
	Tokens  api.Tokens // required: the same as those of the API
	Version string
	// Origins are those of api.Config: a browser that asks by one of them has a connection with TLS.
	Origins []string
	Trend   *trend.Trend     // what the cluster has done lately; nil = nobody asks it
	Now     func() time.Time // default: time.Now
}

// UI is the dashboard of one node.
type UI struct {
	cfg      Config
	sessions *sessions.Sessions
	jobs     *jobs.Jobs
}

// New returns a dashboard, or an error that names what is wrong with the configuration. It starts nothing.
func New(cfg Config) (*UI, error) {
	if cfg.Tokens == nil {
		return nil, fmt.Errorf("ui: want tokens")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &UI{cfg: cfg, sessions: sessions.New(cfg.Tokens, cfg.Now), jobs: jobs.New(cfg.Now)}, nil
}

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

// refuse answers with a page that says what is wrong. Who opens a page without a session is asked to log in.
func (u *UI) refuse(w http.ResponseWriter, r *http.Request, p *problem.Problem) {
	if p.Type == problem.Unauthorized && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		w.Header().Set("HX-Refresh", "true") // a part of a page that is asked for anew is no place for a login
		w.Header().Set("Location", loginFor(r.URL))
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	f := u.frameOf(r, u.callerOf(r), p.Title)
	if r.Method == http.MethodPost { // the address takes a form alone
		f.Address = Root
	}
	page, err := render("problem", f, p)
	if err != nil {
		page = []byte(p.Error())
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.Status)
	_, _ = w.Write(page) // it fails when the browser has gone
}

// callerOf returns the token of who asks; nil = nobody has logged in.
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

// within returns an address if it is one of the dashboard, or else the first page: a form is no way to lead elsewhere.
func within(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(u.Path, Root) || strings.Contains(address, `\`) {
		return Root
	}
	return address
}
