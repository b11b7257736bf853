package ui_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/schedules"
	"taskledger/api/stores"
	"taskledger/api/token"
	"taskledger/api/ui"
	"taskledger/api/works"
	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/engine/enginetest"
	"taskledger/events"
)

// everybody has the tokens of tests, and one that has its name from another one, and other rights.
var everybody = apitest.Everybody(apitest.Secrets{"namesake": {Name: "olga", Role: token.Operator, Prefix: "t1."}})

// fails ends with an error whose text is its parameter.
var fails = behaviors.Define[string, string]("fails", nil)

// keeps takes any JSON, and ends with it.
var keeps = behaviors.Define[json.RawMessage, json.RawMessage]("keeps", nil)

// server is a dashboard on a node of its own, in memory.
type server struct {
	t    *testing.T
	node *enginetest.Node
	api  *api.API
}

func serve(t *testing.T, configure ...func(*api.Config, *ui.Config)) *server {
	t.Helper()
	return serveOn(t, enginetest.Memory(t, builtin.Noop(), builtin.Sleep(), fails.Bind(
		func(_ context.Context, text string) (string, error) { return "", behaviors.Cancel(errors.New(text)) }),
		keeps.Bind(func(_ context.Context, value json.RawMessage) (json.RawMessage, error) { return value, nil })), configure...)
}

// serveOn is serve on another node.
func serveOn(t *testing.T, node *enginetest.Node, configure ...func(*api.Config, *ui.Config)) *server {
	t.Helper()
	client := operations.Direct{Client: node.Client}
	cfg := api.Config{
		Client:       client,
		Tokens:       everybody,
		Version:      "test",
		Routes:       frontsOf(client),
		ErrorFormats: []api.ErrorFormat{stores.ErrorFormat()},
	}
	of := ui.Config{Tokens: everybody, Version: "test"}
	for _, change := range configure {
		change(&cfg, &of)
	}
	u, err := ui.New(of)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Routes = append(cfg.Routes, u.Routes()...)
	cfg.ErrorFormats = append(cfg.ErrorFormats, u.ErrorFormat())
	a, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- u.Run(ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &server{t, node, a}
}

// frontsOf returns the routes that pages ask beside those of package api.
func frontsOf(client operations.Client) []api.Route {
	return slices.Concat(
		stores.Routes(client.Stores()),
		schedules.Routes(client.Schedules(), client.Backfills()),
		works.Routes(client.Works()),
	)
}

// with returns the server with another dashboard, which nobody runs.
func (s *server) with(u *ui.UI) *server {
	s.t.Helper()
	a, err := api.New(api.Config{
		Client:       operations.Direct{Client: s.node.Client},
		Tokens:       everybody,
		Routes:       u.Routes(),
		ErrorFormats: []api.ErrorFormat{u.ErrorFormat()},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return &server{s.t, s.node, a}
}

// answer holds a page.
type answer struct {
	status int
	header http.Header
	text   string
}

// send asks with a token, "" = without one. header is name and value by turns.
func (s *server) send(secret, method, path string, form url.Values, header ...string) answer {
	s.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, body)
	r.Host = "localhost"
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// get asks for a page.
func (s *server) get(secret, path string, header ...string) answer {
	s.t.Helper()
	return s.send(secret, http.MethodGet, path, nil, header...)
}

// want fails the test unless an answer has a status and parts.
func (s *server) want(a answer, status int, parts ...string) answer {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(a.text, part) {
			s.t.Errorf("the answer has no %q: %s", part, clip(a.text))
		}
	}
	if a.status != status {
		s.t.Errorf("status %d, want %d: %s", a.status, status, clip(a.text))
	}
	return a
}

// wantNot fails the test if an answer has one of some parts.
func (s *server) wantNot(a answer, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if strings.Contains(a.text, part) {
			s.t.Errorf("the answer has %q: %s", part, clip(a.text))
		}
	}
}

var blank = regexp.MustCompile(`\s+`)

// clip returns the part of a page that tests are about, without its layout.
func clip(page string) string {
	if _, main, found := strings.Cut(page, "<main"); found {
		page = main
	}
	page = blank.ReplaceAllString(page, " ")
	return page[:min(len(page), 3000)]
}

// submit submits a task and waits for its end.
func (s *server) submit(behavior, id, params string) {
	s.t.Helper()
	s.begin(behavior, id, params)
	s.node.Await(s.t, events.TaskID(id))
}

// begin submits a task.
func (s *server) begin(behavior, id, params string) {
	s.t.Helper()
	got := apitest.Ask(s.api, "admin", http.MethodPost, "/v1/tasks",
		`{"behavior":"`+behavior+`","id":"`+id+`","params":`+params+`}`)
	if got.Code != http.StatusAccepted {
		s.t.Fatalf("submit: %d %s", got.Code, got.Body)
	}
}

// login begins a session and returns the header of its cookie.
func (s *server) login(secret string) (cookie []string) {
	s.t.Helper()
	got := s.want(s.send("", http.MethodPost, "/ui/login", url.Values{"token": {secret}}), http.StatusSeeOther)
	return []string{"Cookie", cookieOf(got)}
}

// ours is a header of what a page of the dashboard sends.
var ours = []string{"Sec-Fetch-Site", "same-origin"}

// cookieOf returns the cookie that an answer sets.
func cookieOf(a answer) string {
	text, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return text
}

// clock is a time that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// routes returns the routes of the dashboard.
func (s *server) routes() []*api.Route {
	return slices.DeleteFunc(slices.Clone(s.api.Routes()), func(r *api.Route) bool { return r.Page == nil })
}
