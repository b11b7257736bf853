package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/task"
)

// asking adds a route whose handler is asked with the client of its caller.
func asking(c *api.Config, handler func(ctx context.Context, inside *api.Client) error) {
	pages(c)
	c.Routes = append(c.Routes, api.Route{
		Method:  "GET",
		Pattern: "/pages/ask",
		Summary: "Ask",
		Role:    token.Viewer,
		Page:    policy,
		Serve: func(c *api.Call) error {
			if err := handler(c.Context(), c.Client()); err != nil {
				return err
			}
			return c.HTML(c.Context(), http.StatusOK, []byte("done"))
		},
	})
}

// What a page shows, and does, is what its caller may see and do by the API itself.
func TestClient_HasTheRightsOfItsCallerAlone(t *testing.T) {
	var told api.TaskPage
	var refused, missing error
	s, open := serve(t, func(c *api.Config) {
		asking(c, func(ctx context.Context, inside *api.Client) error {
			told = api.TaskPage{}
			_, refused = inside.Ask(ctx, api.Question{
				Method: "POST",
				Path:   "/v1/tasks/t2.a/cancel",
				Body:   api.Reason{Reason: "why"},
			}, nil)
			_, missing = inside.Ask(ctx, api.Question{Path: "/v1/tasks/t2.a/../x"}, nil)
			_, err := inside.Ask(ctx, api.Question{Path: "/v1/tasks", Query: url.Values{"limit": {"10"}}}, &told)
			return err
		})
	})
	open()
	s.submit("submitter", "t1.a", "noop")
	s.submit("submitter", "t2.a", "noop")
	for secret, want := range map[string]struct {
		tasks   int
		refused problem.Type
	}{
		"viewer":   {2, problem.Forbidden},
		"tenant":   {1, problem.NotFound},
		"operator": {2, problem.State},
	} {
		s.want(s.send(secret, "GET", "/v1/tasks/t1.a?wait=30s", nil), 200, "SUCCESS")
		s.want(s.send("viewer", "GET", "/v1/tasks/t2.a?wait=30s", nil), 200, "SUCCESS")
		s.want(s.send(secret, "GET", "/pages/ask", nil), 200, "done")
		if len(told.Tasks) != want.tasks {
			t.Errorf("%s sees %d tasks, want %d", secret, len(told.Tasks), want.tasks)
		}
		if p, ok := errors.AsType[*problem.Problem](refused); !ok || p.Type != want.refused {
			t.Errorf("cancel by %s: %v, want %s", secret, refused, want.refused)
		}
		if p, ok := errors.AsType[*problem.Problem](missing); !ok || p.Type != problem.NotFound {
			t.Errorf("a path that is not clean: %v", missing)
		}
	}
	if told.Tasks[0].Status != task.Success {
		t.Errorf("%+v", told.Tasks[0])
	}
	s.want(s.send("", "GET", "/pages/ask", nil, "Cookie", "session=tenant"), 200, "done")
	if len(told.Tasks) != 1 {
		t.Errorf("by a cookie of tenant: %d tasks", len(told.Tasks))
	}
}

func TestClient_TakesLinesAsTheyCome(t *testing.T) {
	var lines []string
	enough := errors.New("enough")
	s, open := serve(t, func(c *api.Config) {
		asking(c, func(ctx context.Context, inside *api.Client) error {
			lines = nil
			err := inside.Lines(ctx, api.Question{Path: "/v1/replay"}, func(line []byte) error {
				lines = append(lines, string(line))
				if len(lines) == 2 {
					return enough
				}
				return nil
			})
			if !errors.Is(err, enough) {
				t.Errorf("%v after %d lines", err, len(lines))
			}
			return nil
		})
	})
	open()
	s.submit("submitter", "t1.a", "noop")
	s.want(s.send("viewer", "GET", "/v1/tasks/t1.a?wait=30s", nil), 200, "SUCCESS")
	s.want(s.send("viewer", "GET", "/pages/ask", nil), 200, "done")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "{") || strings.Contains(lines[0], "\n") {
		t.Errorf("%q", lines)
	}
}

func TestRoot_NamesWhatThereIsBelowIt(t *testing.T) {
	s, _ := serve(t, nil)
	answer := s.send("viewer", "GET", "/", nil)
	if s.want(answer, 404, "the API is below /v1/"); strings.Contains(answer.text, "/ui/") {
		t.Errorf("without a dashboard: %s", answer.text)
	}
	page := api.Route{
		Method:  "GET",
		Pattern: "/ui/{$}",
		Summary: "Show",
		Role:    token.Viewer,
		Serve:   func(*api.Call) error { return nil },
	}
	s, _ = serve(t, func(c *api.Config) { c.Routes = append(c.Routes, page) })
	s.want(s.send("viewer", "GET", "/", nil), 404, "the dashboard below /ui/")
}

func TestClient_TakesElementsAsTheyCome(t *testing.T) {
	var got []string
	enough := errors.New("enough")
	most := 10
	s, _ := serve(t, func(c *api.Config) {
		asking(c, func(ctx context.Context, inside *api.Client) error {
			got = nil
			take := func(element json.RawMessage) error {
				if got = append(got, string(element)); len(got) == most {
					return enough
				}
				return nil
			}
			_, refused := errors.AsType[*problem.Problem](api.Elements(ctx, inside, api.Question{Path: "/v1/nothing"}, take))
			if !refused || got != nil {
				t.Errorf("a route that is not there is not refused: %q", got)
			}
			return api.Elements(ctx, inside, api.Question{Path: "/pages/array"}, take)
		})
		c.Routes = append(c.Routes, api.Route{
			Method:  "GET",
			Pattern: "/pages/array",
			Summary: "List",
			Role:    token.Viewer,
			Serve:   func(c *api.Call) error { return c.JSON(http.StatusOK, []any{1, "a", []int{}}) },
		})
	})
	s.want(s.send("viewer", "GET", "/pages/ask", nil), 200, "done")
	if !slices.Equal(got, []string{"1", `"a"`, "[]"}) {
		t.Errorf("%q", got)
	}
	most = 2
	s.want(s.send("viewer", "GET", "/pages/ask", nil), 500, "")
	if len(got) != most {
		t.Errorf("%q after an error", got)
	}
}

// A job of a page goes on when its request has ended, and no longer than its caller's token holds.
func TestClient_OutlivesItsCallAndNotItsToken(t *testing.T) {
	var inside *api.Client
	revoked := &revocable{Tokens: everybody}
	s, _ := serve(t, func(c *api.Config) {
		asking(c, func(_ context.Context, its *api.Client) error { inside = its; return nil })
		c.Tokens = revoked
	})
	s.want(s.send("viewer", "GET", "/pages/ask", nil), 200, "done")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var v api.TaskPage
	if _, err := inside.Ask(ctx, api.Question{Path: "/v1/tasks"}, &v); err != nil {
		t.Error(err)
	}
	revoked.all.Store(true)
	_, err := inside.Ask(ctx, api.Question{Path: "/v1/tasks"}, &v)
	if p, ok := errors.AsType[*problem.Problem](err); !ok || p.Type != problem.Unauthorized {
		t.Errorf("with a token that was revoked: %v", err)
	}
}

// revocable are tokens that are all revoked at once.
type revocable struct {
	api.Tokens
	all atomic.Bool
}

func (r *revocable) Find(secret string) *token.Token {
	if r.all.Load() {
		return nil
	}
	return r.Tokens.Find(secret)
}
