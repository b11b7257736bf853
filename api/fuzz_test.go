package api_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

// away is a cluster that cannot be asked.
type away struct{ operations.Client }

func (away) SubmitRaw(context.Context, string, []byte, task.SubmitOptions) (operations.Handle, error) {
	return nil, store.ErrUnavailable
}

func (away) SubmitMany(_ context.Context, requests []task.Request, _ task.ManyOptions) []operations.Submitted {
	all := make([]operations.Submitted, len(requests))
	for i := range all {
		all[i].Err = store.ErrUnavailable
	}
	return all
}

func (away) Operate(context.Context, operations.Verb, string, string) (bool, error) {
	return false, store.ErrUnavailable
}

func (away) OperateSeen(context.Context, operations.Verb, *task.Task, string) (bool, error) {
	return false, store.ErrUnavailable
}

func (away) Get(context.Context, events.TaskID) (t task.Task, err error) {
	return t, store.ErrUnavailable
}

func (away) GetForgotten(context.Context, events.TaskID) (t task.Task, err error) {
	return t, store.ErrUnavailable
}

func (away) ListPage(context.Context, task.Filter, string) (p task.Page, err error) {
	return p, store.ErrUnavailable
}

func (away) Counts(context.Context, string) (n task.Counts, err error) {
	return n, store.ErrUnavailable
}

func (away) Explain(context.Context, events.TaskID) (e engine.Explanation, err error) {
	return e, store.ErrUnavailable
}

func (away) Nodes(context.Context) ([]store.NodeInfo, error) { return nil, store.ErrUnavailable }

func (away) Shards(context.Context) ([]engine.ShardInfo, error) { return nil, store.ErrUnavailable }

// Whatever stands in a request to any route, the answer is a problem, or that the cluster cannot be asked: never a bug.
func FuzzRequest_OfEveryRoute(f *testing.F) {
	a, err := api.New(api.Config{Client: away{}, Tokens: everybody, Limits: api.Limits{PerSecond: 1e9, Burst: 1e9}})
	if err != nil {
		f.Fatal(err)
	}
	routes := a.Routes()
	for i := range routes {
		all := `{"behavior":"noop","params":{},"tasks":[{"behavior":"noop"}],"operation":"retry","ids":["a"]}`
		f.Add(i, "t1.a", "wait=1ms&limit=1", []byte(all), "k")
		f.Add(i, "a%2Fb", "cursor=x&at=2026-01-01T00:00:00Z", []byte(`[[[[`), "\x00")
		f.Add(i, "%0d%0a", "&&=&%zz", []byte{}, strings.Repeat("k", 300))
	}
	secrets := []string{"admin", "tenant", "sleeper"}
	f.Fuzz(func(t *testing.T, i int, id, query string, body []byte, key string) {
		route := routes[uint(i)%uint(len(routes))]
		path := strings.NewReplacer("{id}", id, "{behavior}", id).Replace(route.Pattern)
		u, err := url.ParseRequestURI("http://localhost" + path)
		if err != nil {
			return
		}
		u.RawQuery = query
		for _, secret := range secrets {
			r := (&http.Request{
				Method: route.Method,
				URL:    u,
				Host:   "localhost",
				Header: http.Header{
					"Authorization":   {"Bearer " + secret},
					"Content-Type":    {"application/json"},
					"Idempotency-Key": {key},
				},
				ContentLength: int64(len(body)),
				Body:          http.NoBody,
			}).WithContext(t.Context())
			if len(body) > 0 {
				r.Body = readCloser{bytes.NewReader(body)}
			}
			w := httptest.NewRecorder()
			a.ServeHTTP(w, r)
			if w.Code == http.StatusInternalServerError || w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
				t.Fatalf("%s %s?%s: %d %s", route.Method, path, query, w.Code, w.Body)
			}
			if w.Code >= 400 && w.Header().Get("Content-Type") != "application/problem+json" {
				t.Fatalf("%s %s: %d as %q", route.Method, path, w.Code, w.Header().Get("Content-Type"))
			}
		}
	})
}

func (away) Ledger() *ledger.Ledger {
	return ledger.New(ledger.Config{Cluster: store.Cluster{Shards: 4}})
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }
