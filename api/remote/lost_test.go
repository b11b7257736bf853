package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/remote"
	"taskledger/bulk"
	"taskledger/ledger"
	"taskledger/ledger/repair"
	"taskledger/store"
	"taskledger/task"
)

const place = `{"cluster":"c","shards":1,"begins":1,"revision":1,"entries":[]}`

// against returns a client of a server that answers so, once it has told which cluster it is of.
func against(t *testing.T, within time.Duration, answer http.HandlerFunc) *remote.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/base/v1/journal" {
			_, _ = io.WriteString(w, place)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	c, err := remote.Open(t.Context(), remote.Options{URL: s.URL + "/base/", Token: "secret", Within: within})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func get(t *testing.T, c operations.Client) error {
	t.Helper()
	_, err := c.Get(t.Context(), "a/1")
	return err
}

func put(t *testing.T, c operations.Client) error {
	t.Helper()
	h, err := c.SubmitRaw(t.Context(), "noop", nil, task.SubmitOptions{ID: "a/1"})
	if _, waited := h.Wait(t.Context()); !errors.Is(waited, err) || h.ID() != "a/1" {
		t.Errorf("%s: the handle says %v", h.ID(), waited)
	}
	return err
}

func each(t *testing.T, c operations.Client) (last error) {
	t.Helper()
	for _, err := range c.Each(t.Context(), task.Filter{Behavior: "noop"}, task.Delete, bulk.Options{}) {
		last = err
	}
	return last
}

// named reports whether an error names its operation, and keeps the token.
func named(err error, operation string) bool {
	return err != nil && strings.Contains(err.Error(), operation) && !strings.Contains(err.Error(), "secret")
}

func TestLost_AServerThatStallsIsUnavailableAndAChangeUnknown(t *testing.T) {
	stalled := make(chan struct{})
	c := against(t, 20*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "change-matching") {
			_, _ = io.WriteString(w, `{"matched":1,"cursor":"x","done":false}`+"\n")
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-stalled:
		}
	})
	defer close(stalled)
	if err := get(t, c); !errors.Is(err, store.ErrUnavailable) || !named(err, "get") {
		t.Errorf("get: %v", err)
	}
	if err := put(t, c); !errors.Is(err, task.ErrUnknown) || !named(err, "submit") {
		t.Errorf("submit: %v", err)
	}
	if err := each(t, c); !errors.Is(err, store.ErrUnavailable) || !named(err, "delete") {
		t.Errorf("each: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Get(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestLost_ASocketThatIsGoneIsUnavailable(t *testing.T) {
	f := start(t)
	c := f.open(t, remote.Options{URL: f.socket, Token: "admin"})
	f.stop()
	for what, err := range map[string]error{"get": get(t, c), "submit": put(t, c), "delete": each(t, c)} {
		if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, task.ErrUnknown) || !named(err, what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	patient, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Attach("a").Wait(patient); !errors.Is(err, context.DeadlineExceeded) { // its node may come back
		t.Errorf("wait: %v", err)
	}
	_, err := remote.Open(t.Context(), remote.Options{URL: "unix:" + filepath.Join(t.TempDir(), "none")})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("open: %v", err)
	}
}

func TestLost_AnAnswerThatBreaksOffIsNone(t *testing.T) {
	cut := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000000")
			_, _ = io.WriteString(w, text)
		}
	}
	for text, answer := range map[string]http.HandlerFunc{
		"cut":     cut(`{"id":"a"`),
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			for range 10 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		},
		"gateway":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"silently": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		c := against(t, time.Minute, answer)
		if err := get(t, c); !errors.Is(err, store.ErrUnavailable) || !named(err, "get") {
			t.Errorf("%s: get: %v", text, err)
		}
		if err := put(t, c); !errors.Is(err, task.ErrUnknown) || !named(err, "submit") {
			t.Errorf("%s: submit: %v", text, err)
		}
		if err := each(t, c); err == nil {
			t.Errorf("%s: each has done nothing, and says so of nothing", text)
		}
	}
}

func TestLost_AChangeOfManyThatEndsEarlyTellsItsCursor(t *testing.T) {
	c := against(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"matched":1,"changed":1,"cursor":"x","done":false}`+"\n")
	})
	var last bulk.Report
	var failed error
	for r, err := range c.Each(t.Context(), task.Filter{Behavior: "noop"}, task.Delete, bulk.Options{}) {
		last, failed = r, err
	}
	if last.Cursor != "x" || !errors.Is(failed, store.ErrUnavailable) {
		t.Errorf("%+v, %v", last, failed)
	}
}

func TestRefused_EveryTypeOfProblemComesBackAsItsError(t *testing.T) {
	for _, is := range problem.Types() {
		c := against(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
			p := problem.New(is, "the detail")
			p.RetryAfter, p.Task, p.Field = 7, "a/1", "field"
			p.Write(w)
		})
		want := problem.New(is, "the detail")
		want.RetryAfter, want.Task, want.Field = 7, "a/1", "field"
		err := get(t, c)
		if !named(err, "get") || !strings.Contains(err.Error(), "the detail") {
			t.Errorf("%s: %v", is, err)
		}
		for _, sentinel := range []error{
			store.ErrUnavailable, store.ErrTrimmed, task.ErrNotFound, task.ErrUnknown, task.ErrNotKept,
			task.ErrOtherRequest, task.ErrNoneSubmitted, task.ErrUnknownBehavior, context.DeadlineExceeded,
		} {
			if errors.Is(want.Err(), sentinel) != errors.Is(err, sentinel) {
				t.Errorf("%s: %v is %v: %v", is, err, sentinel, errors.Is(err, sentinel))
			}
		}
		over, isOver := errors.AsType[*task.OverloadError](err)
		if wants := is == problem.TooMany || is == problem.Overloaded; wants != isOver || isOver && over.RetryAfter != 7*time.Second {
			t.Errorf("%s: %#v", is, err)
		}
		if is == problem.Internal && !strings.Contains(err.Error(), "of request ") {
			t.Errorf("%s does not name the request: %v", is, err)
		}
	}
}

func TestSent_IsWhatTheAPIAsksFor(t *testing.T) {
	var got []string
	c := against(t, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer secret" || len(r.Header.Get("X-Request-Id")) != 16 {
			t.Errorf("headers %v", r.Header)
		}
		got = append(got, fmt.Sprintf("%s %s key=%s %s", r.Method, strings.TrimPrefix(r.RequestURI, "/base/v1"), r.Header.Get("Idempotency-Key"), body))
		w.WriteHeader(http.StatusNoContent)
	})
	ctx := t.Context()
	_, _ = c.SubmitRaw(ctx, "noop", []byte(`{"a": "<"}`), task.SubmitOptions{ID: "a/1", RequestKey: "k 1", Delay: 1})
	_, _ = c.Operate(ctx, operations.Cancel, "a/1", "why")
	_, _ = c.Operate(ctx, operations.Delete, "a/1", "")
	_, _ = c.Operate(ctx, operations.Pause, "noop", "")
	_ = c.Works().RerunWork(ctx, "a/1")
	want := []string{
		`POST /tasks key=k 1 {"behavior":"noop","id":"a/1","delay_ms":1,"params":{"a": "<"}}`,
		`POST /tasks/a~1/cancel key= {"reason":"why"}`,
		`DELETE /tasks/a~1 key= `,
		`POST /behaviors/noop/pause key= {"force":true}`,
		`POST /tasks/a~1/work/rerun key= {"failed":true}`,
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("sent %q\nwant %q", got, want)
			break
		}
	}
	for _, key := range []string{" k", "k\n"} {
		if _, err := c.SubmitRaw(ctx, "noop", nil, task.SubmitOptions{RequestKey: key}); err == nil || len(got) != len(want) {
			t.Errorf("the key %q: %v", key, err)
		}
	}
}

// A node on files draws a token when it starts.
func TestTokens_AreReadAnewWhereOneIsRefused(t *testing.T) {
	holds, asked := "new", 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch {
		case r.Header.Get("Authorization") != "Bearer "+holds:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v1/journal":
			_, _ = io.WriteString(w, place)
		default:
			_, _ = io.WriteString(w, `{"id":"a/1","behavior":"noop","status":"SUCCESS","substatus":"final"}`)
		}
	}))
	t.Cleanup(s.Close)
	tells := "new"
	c, err := remote.Open(t.Context(), remote.Options{URL: s.URL, Token: "old", Renew: func() string { return tells }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	holds, tells = "newer", "newer"
	if err := get(t, c); err != nil {
		t.Error(err)
	}
	for _, tells = range []string{"newer", ""} { // it is refused for good, or nothing tells another one
		holds, asked = "of others", 0
		if err := get(t, c); err == nil || asked != 1 {
			t.Errorf("told %q: %v after %d requests", tells, err, asked)
		}
	}
}

func TestOpen_RefusesWhatIsNoAddressAndNeverTellsASecret(t *testing.T) {
	for _, o := range []remote.Options{
		{URL: ""}, {URL: "unix:"}, {URL: "ftp://a"}, {URL: "http://"}, {URL: "http://a?b"}, {URL: "http://u:secret@a"},
		{URL: "http://a", Token: "secret\n"}, {URL: "://"},
	} {
		_, err := remote.Open(t.Context(), o)
		if _, is := errors.AsType[*store.InvalidError](err); !is || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestTokens_ThatMayNotReadJournalsDoTheRest(t *testing.T) {
	f := start(t)
	c := f.open(t, remote.Options{URL: f.url, Token: "tenant"})
	outcome(t, submit(t, c, "echo", `{}`, task.SubmitOptions{ID: "t1.a"}))
	_, err := c.Ledger().HistoryPage(t.Context(), "t1.a", ledger.HistoryOptions{})
	if p, is := errors.AsType[*problem.Problem](err); !is || p.Type != problem.Forbidden {
		t.Errorf("history: %v", err)
	}
	c = f.open(t, remote.Options{URL: f.url, Token: "nobody"})
	if err := get(t, c); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("get: %v", err)
	}
}

func TestRepair_SaysWhereToDoItInstead(t *testing.T) {
	c := against(t, time.Minute, nil)
	_, err := c.Repair(t.Context(), repair.Options{})
	if !errors.Is(err, remote.ErrNoRoute) || !strings.Contains(err.Error(), "--etcd") {
		t.Errorf("repair: %v", err)
	}
	if _, err := c.Ask(t.Context(), "s", "q", nil); !errors.Is(err, remote.ErrNoRoute) {
		t.Errorf("ask: %v", err)
	}
}

// batches is a server that takes requests of many tasks, but those whose text has a word.
type batches struct {
	bodies  []int // bytes of each
	tasks   int   // that were accepted
	refuses string
}

func (b *batches) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var asked struct {
		Tasks []struct {
			Params string `json:"params"`
		} `json:"tasks"`
	}
	if err == nil {
		err = json.Unmarshal(text, &asked)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.bodies = append(b.bodies, len(text))
	var told api.BatchAnswer
	wrong := b.refuses != "" && strings.Contains(string(text), b.refuses)
	for _, one := range asked.Tasks {
		item := api.BatchItem{ID: "a/1"}
		switch {
		case wrong && strings.Contains(one.Params, b.refuses):
			item = api.BatchItem{Problem: problem.Of(&store.InvalidError{Field: "params", Problem: "wrong"})}
		case wrong:
			item = api.BatchItem{Problem: problem.Of(task.ErrNoneSubmitted)}
		default:
			b.tasks++
		}
		told.Tasks = append(told.Tasks, item)
	}
	_ = json.NewEncoder(w).Encode(told)
}

func TestSubmitMany_OfMoreThanABodyTakesTravelsInParts(t *testing.T) {
	many := func(wrong ...int) (all []task.Request) {
		for i := range 40 {
			params := strings.Repeat("x", 250_000)
			if slices.Contains(wrong, i) {
				params += "wrong"
			}
			all = append(all, task.Request{Name: "noop", Params: []byte(`"` + params + `"`)})
		}
		return all
	}
	const whole = 4 << 20
	for name, c := range map[string]struct {
		requests []task.Request
		o        task.ManyOptions
		accepted int
		bodies   int
	}{
		"each":                  {many(), task.ManyOptions{}, 40, 3},
		"all valid":             {many(), task.ManyOptions{AllValid: true}, 40, 3},
		"one of the first part": {many(3), task.ManyOptions{AllValid: true}, 0, 1},
		"one of the second":     {many(20), task.ManyOptions{AllValid: true}, 16, 2},
		"under a key":           {many(), task.ManyOptions{RequestKey: "key"}, 0, 0},
	} {
		server := &batches{refuses: "wrong"}
		got := against(t, time.Minute, server.ServeHTTP).SubmitMany(t.Context(), c.requests, c.o)
		made := 0
		for i, r := range got {
			if r.Err == nil {
				made++
			} else if c.o.RequestKey == "" && !errors.Is(r.Err, task.ErrNoneSubmitted) && exact(r.Err) == nil {
				t.Errorf("%s: request %d: %v", name, i, r.Err)
			}
		}
		if len(got) != len(c.requests) || made != c.accepted || server.tasks != c.accepted || len(server.bodies) != c.bodies {
			t.Errorf("%s: %d results, %d accepted, %d by the server, bodies of %d bytes; want %d accepted in %d bodies",
				name, len(got), made, server.tasks, server.bodies, c.accepted, c.bodies)
		}
		if len(server.bodies) > 0 && slices.Max(server.bodies) > whole {
			t.Errorf("%s: bodies of %d bytes", name, server.bodies)
		}
		if c.o.RequestKey != "" {
			var limit *task.LimitError
			if !errors.As(got[0].Err, &limit) || limit.Limit != whole {
				t.Errorf("%s: %v", name, got[0].Err)
			}
		}
	}
}

// exact returns an error as that of a request that is wrong itself.
func exact(err error) *store.InvalidError {
	var invalid *store.InvalidError
	errors.As(err, &invalid)
	return invalid
}

// Whoever waits for an outcome goes on while the node starts again.
func TestLost_WhoWaitsGoesOnOnceItsNodeIsThereAgain(t *testing.T) {
	asked := 0
	c := against(t, time.Second, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked <= 2 {
			hijacked, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				err = hijacked.Close() // as a process that is killed
			}
			if err != nil {
				t.Error(err)
			}
			return
		}
		_, _ = io.WriteString(w, `{"id":"a","status":"SUCCESS","substatus":"final","attempt":1,"runs":1,"result":7}`)
	})
	if result, err := c.Attach("a").Wait(t.Context()); err != nil || string(result) != "7" {
		t.Errorf("%s, %v", result, err)
	}
}
