package ui

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
)

// frame holds what all pages have around their own part.
type frame struct {
	Title   string
	Section string // of the navigation, that the page is of
	Version string
	Address string // leads to the page, with its query; from the answer to a form it leads to another page
	Zone    *time.Location
	ZoneSet bool         // somebody has chosen it
	By      *token.Token // who looks; nil = nobody has logged in
	// Missing lists what of the page could not be had, and why.
	Missing []string
	Now     time.Time
	// Once is in a form that orders runs: the same form makes them once. It is the same on all pages until then, which
	// a browser has already where nothing else has changed.
	Once string
	Body any // what the page's own template shows
}

// section is an entry of the navigation.
type section struct {
	Name, At string
	needs    token.Role
	whole    bool // it tells of the whole cluster, which a token of some tasks does not see
}

var sections = []section{
	{"Overview", Root, token.Viewer, false},
	{"Tasks", Root + "tasks", token.Viewer, false},
	{"Submit", Root + "submit", token.Submitter, false},
	{"Behaviors", Root + "behaviors", token.Viewer, false},
	{"Schedules", Root + "schedules", token.Viewer, false},
	{"Collections", Root + "collections", token.Viewer, false},
	{"Stores", Root + "stores", token.Viewer, false},
	{"Work", Root + "work", token.Viewer, false},
	{"Nodes", Root + "nodes", token.Viewer, true},
	{"Settings", Root + "settings", token.Viewer, true},
	{"Audit", Root + "audit", token.Viewer, true},
}

// Sections returns the entries of the navigation that the viewer may open.
func (f *frame) Sections() (shown []section) {
	for _, s := range sections {
		if f.By != nil && f.By.Role.Allows(s.needs) && !(s.whole && f.By.Limited()) {
			shown = append(shown, s)
		}
	}
	return shown
}

// May reports whether who looks has a role.
func (f *frame) May(role string) bool {
	var needed token.Role
	return f.By != nil && needed.UnmarshalText([]byte(role)) == nil && f.By.Role.Allows(needed)
}

// With returns the frame around a part of its page, for a template of that part.
func (f *frame) With(part any) *frame {
	g := *f
	g.Body = part
	return &g
}

func (u *UI) frameOf(r *http.Request, by *token.Token, title string) *frame {
	address := r.URL.RequestURI()
	if r.Method == http.MethodPost { // it takes a form alone
		address = Root
	}
	return &frame{
		Title:   title,
		Version: u.cfg.Version,
		Address: address,
		Zone:    u.zoneOf(r),
		ZoneSet: u.cookie(r, zoneCookie) != "",
		By:      by,
		Now:     u.cfg.Now(),
	}
}

// look is a page that is being made: what it asks for, and around it the frame.
type look struct {
	*frame
	call  *api.Call
	api   *api.Client
	u     *UI
	until time.Time // what has not come by then is missing in the page
}

// look begins a page.
func (u *UI) look(c *api.Call, section, title string) *look {
	f := u.frameOf(c.Request(), c.Token(), title)
	f.Section, f.Once = section, *u.orders.Load()
	return &look{
		frame: f,
		call:  c,
		api:   c.Client(),
		u:     u,
		until: time.Now().Add(u.cfg.Within),
	}
}

// bounded returns the context of a question: all questions of a page end at one time, whether they are asked side by
// side or one after the other.
func (l *look) bounded() (context.Context, context.CancelFunc) {
	return context.WithDeadline(l.call.Context(), l.until)
}

// late reports whether the time of the page is over.
func (l *look) late() bool { return !time.Now().Before(l.until) }

// get asks for a part of the page without which it cannot be.
func (l *look) get(path string, into any) error {
	_, err := l.send(api.Question{Path: path}, into)
	return err
}

// send asks a question, or has the API change something, while the page has time.
func (l *look) send(q api.Question, into any) (http.Header, error) {
	ctx, cancel := l.bounded()
	defer cancel()
	return l.api.Ask(ctx, q, into)
}

// part is something that a page shows beside other things, and can be without.
type part struct {
	what string // it is named so where it is missing
	path string
	into any
}

// parts asks for parts of the page side by side. One that does not come is named as missing, unless who looks may not
// see it.
func (l *look) parts(all ...part) {
	var wg sync.WaitGroup
	failed := make([]error, len(all))
	for i, p := range all {
		wg.Go(func() { failed[i] = l.get(p.path, p.into) })
	}
	wg.Wait()
	for i, p := range all {
		l.misses(p.what, failed[i])
	}
}

// misses names a part as missing that could not be had, unless who looks may not see it.
func (l *look) misses(what string, err error) {
	if err == nil {
		return
	}
	if why := problem.Of(err); why.Type != problem.Forbidden {
		l.Missing = append(l.Missing, what+": "+why.Error())
	}
}

// show answers with the page of a name.
func (l *look) show(name string, body any) error { return l.showAs(http.StatusOK, name, body) }

// showAs answers with the page of a name and a status. It waits for a place, and for the bytes of a large page, until
// the time of the page is over.
func (l *look) showAs(status int, name string, body any) error {
	ctx, cancel := context.WithDeadline(l.call.Context(), l.until.Add(placeWithin))
	defer cancel()
	if err := l.call.Making(ctx); err != nil {
		return err
	}
	page, err := render(name, l.frame, body)
	if err != nil {
		return fmt.Errorf("make the page %s: %w", name, err)
	}
	return l.call.HTML(ctx, status, page)
}

//go:embed templates
var templates embed.FS

// pages holds the template of each page, in the layout.
var pages = readPages()

func readPages() map[string]*template.Template {
	functions := template.FuncMap{"asset": assetAt, "path": pathOf}
	shared, err := template.New("").Funcs(functions).ParseFS(templates, "templates/shared/*.html")
	if err != nil {
		panic(err) // the compiler has embedded them, and each test reads them
	}
	all := map[string]*template.Template{}
	entries, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		panic(err)
	}
	for _, file := range entries {
		all[strings.TrimSuffix(path.Base(file), ".html")] =
			template.Must(template.Must(shared.Clone()).ParseFS(templates, file))
	}
	return all
}

// render returns the page of a name around a body.
func render(name string, f *frame, body any) ([]byte, error) {
	t := pages[name]
	if t == nil {
		return nil, fmt.Errorf("there is no page %s", name)
	}
	f.Body = body
	var page bytes.Buffer
	if err := t.ExecuteTemplate(&page, "layout", f); err != nil {
		return nil, err
	}
	return visible(page.Bytes()), nil
}
