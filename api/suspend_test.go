package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work/progress"
)

// suspendable has tasks that can be suspended, one of them with a work that has buckets open until a time.
type suspendable struct {
	operations.Direct
	until time.Time
	fails error // each look, once the work was found
	looks int
	did   []string
}

func (s *suspendable) Operate(_ context.Context, verb operations.Verb, on, reason string) (bool, error) {
	s.did = append(s.did, fmt.Sprintf("%s %s %s", verb, on, reason))
	return false, nil
}

func (s *suspendable) Works() operations.Works { return openWork{s.Direct.Works(), s} }

type openWork struct {
	operations.Works
	of *suspendable
}

// Work is behind: it has no open bucket yet.
func (w openWork) Work(context.Context, events.TaskID) (is progress.Work, err error) { return is, nil }

func (w openWork) WorkLinear(ctx context.Context, id events.TaskID) (is progress.Work, err error) {
	w.of.looks++
	switch {
	case id != "work":
		return is, fmt.Errorf("task %s: %w", id, task.ErrNotFound)
	case ctx.Err() != nil:
		return is, context.Cause(ctx)
	case w.of.looks > 1 && w.of.fails != nil:
		return is, w.of.fails
	case time.Now().Before(w.of.until):
		is.Open = make([]progress.Bucket, 3)
	}
	return is, nil
}

func TestSuspend_OfAWorkWaitsForItsOpenBuckets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id     string
		opens  time.Duration
		fails  error
		status int
		body   string
		least  time.Duration
		within time.Duration
	}{
		"a task":            {"plain", 0, nil, 204, "", 0, 0},
		"none is open":      {"work", 0, nil, 200, `{"open_buckets":0}`, 0, 0},
		"soon":              {"work", time.Second, nil, 200, `{"open_buckets":0}`, time.Second, 2 * time.Second},
		"late":              {"work", time.Hour, nil, 202, `{"open_buckets":3}`, 10 * time.Second, 10 * time.Second},
		"cannot be seen on": {"work", time.Hour, errors.New("away"), 202, `{"open_buckets":3}`, 10 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				s := &suspendable{until: begun.Add(c.opens), fails: c.fails}
				tokens := apitest.Secrets{"operator": {Name: "olga", Role: token.Operator}}
				a, err := api.New(api.Config{Client: s, Tokens: tokens})
				if err != nil {
					t.Fatal(err)
				}
				r := httptest.NewRequest("POST", "/v1/tasks/"+c.id+"/suspend", strings.NewReader(`{"reason":"rest"}`))
				r.Host = "localhost"
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer operator")
				w := httptest.NewRecorder()
				a.ServeHTTP(w, r)
				if got := strings.TrimSpace(w.Body.String()); w.Code != c.status || got != c.body {
					t.Errorf("%d %s, want %d %s", w.Code, got, c.status, c.body)
				}
				if len(s.did) != 1 || s.did[0] != "suspend "+c.id+" rest" {
					t.Errorf("did %q", s.did)
				}
				if took := time.Since(begun); took < c.least || took > c.within {
					t.Errorf("it took %v, want %v to %v", took, c.least, c.within)
				}
			})
		})
	}
}
