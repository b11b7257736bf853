package stores_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/item"
	"taskledger/task"
)

// matrix says of every route who may use it, and with what body it is asked.
var matrix = map[string]struct {
	role token.Role
	body string
}{
	"GET /groups":                  {token.Viewer, ""},
	"GET /stats":                   {token.Viewer, ""},
	"GET /task/{task}":             {token.Viewer, ""},
	"GET /tasks/{tasks}":           {token.Viewer, ""},
	"GET /group/{group}":           {token.Viewer, ""},
	"GET /group/{$}":               {token.Viewer, ""},
	"GET /group":                   {token.Viewer, ""},
	"POST /update":                 {token.Submitter, `{"clientid":1,"depends":[1]}`},
	"POST /claim":                  {token.Submitter, `{"clientid":1,"group":"none","duration":1}`},
	"GET /compat/group":            {token.Viewer, ""},
	"GET /compat/groups":           {token.Viewer, ""},
	"GET /compat/task/{task}":      {token.Viewer, ""},
	"GET /compat/tasks/{tasks}":    {token.Viewer, ""},
	"GET /compat/group/{group...}": {token.Viewer, ""},
	"POST /compat/update":          {token.Submitter, `{"clientid":1,"depends":[1]}`},
	"POST /compat/claim":           {token.Submitter, `{"clientid":1,"group":"none","duration":1}`},
}

func TestAuthorization_EveryRouteAllowsWhatItsRowSays(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	s.made(s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g"}]}`))
	var known []string
	for _, r := range s.api.Routes() {
		path, ours := strings.CutPrefix(r.Pattern, "/store/{name}")
		if !ours {
			continue
		}
		name := r.Method + " " + path
		known = append(known, name)
		row, has := matrix[name]
		if !has {
			t.Errorf("%s has no row", name)
			continue
		}
		ask := func(secret, store string) answer {
			path := strings.NewReplacer("{name}", store, "{task}", "1", "{tasks}", "1,2", "{group}", "g", "{group...}", "g", "{$}", "%2F").Replace(r.Pattern)
			if name == "GET /group" {
				path += "?name=g"
			}
			return s.send(secret, r.Method, path, row.body)
		}
		for _, secret := range []string{"", "unknown", "viewer", "submitter", "operator", "admin", "worker"} {
			got := ask(secret, "a")
			switch who := everybody[secret]; {
			case who == nil:
				s.refused(got, http.StatusUnauthorized, "token")
			case who.Role == token.Worker || who.Role < row.role:
				s.refused(got, http.StatusForbidden, "role")
			case got.status != http.StatusOK:
				t.Errorf("%s by %q: %d %s", name, secret, got.status, got.text)
			}
		}
		if got := ask("of a", "a"); got.status != http.StatusOK {
			t.Errorf("%s by the token of its store: %d", name, got.status)
		}
		for _, store := range []string{"ab", "b", "default"} {
			s.refused(ask("of a", store), http.StatusForbidden, "not for the store")
		}
		s.refused(ask("tenant", "a"), http.StatusForbidden, "not for the store")
		s.refused(ask("sleeper", "a"), http.StatusForbidden, "not for the store")
	}
	for name := range matrix {
		if !slices.Contains(known, name) {
			t.Errorf("%s is no route", name)
		}
	}
	s.refused(s.send("viewer", "GET", "/store/a/groups", "", "Origin", "http://elsewhere"), http.StatusForbidden, "origin")
}

func TestOpenAPI_HasTheRoutesAndTheirErrors(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name string }
			Responses  map[string]struct {
				Ref string `json:"$ref"`
			}
		}
		Components struct {
			Responses map[string]struct{ Content map[string]any }
		}
	}
	if err := json.Unmarshal([]byte(s.get("/openapi.json").text), &doc); err != nil {
		t.Fatal(err)
	}
	for name := range matrix {
		method, path, _ := strings.Cut(name, " ")
		if strings.HasSuffix(path, "{$}") {
			continue
		}
		op, has := doc.Paths["/store/{name}"+strings.ReplaceAll(path, "...", "")][strings.ToLower(method)]
		for _, status := range []string{"4XX", "5XX"} {
			refused := strings.TrimPrefix(op.Responses[status].Ref, "#/components/responses/")
			if !has || doc.Components.Responses[refused].Content["application/json"] == nil {
				t.Errorf("%s, %s: %+v", name, status, op)
			}
		}
		if len(op.Responses) != 3 { // a conflict has the form of every other error
			t.Errorf("%s: answers %v, want 200, 4XX and 5XX", name, op.Responses)
		}
		for _, p := range op.Parameters {
			if strings.ContainsAny(p.Name, ".{}$") {
				t.Errorf("%s: parameter %s", name, p.Name)
			}
		}
	}
}

// A claim that waits gets what comes.
func TestClaim_ThatWaitsIsAnsweredWhenATaskComes(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	got := make(chan answer, 1)
	go func() {
		a, _ := s.try("submitter", "POST", "/store/a/claim", `{"clientid":1,"group":"g","duration":60000,"wait":60000}`)
		got <- a
	}()
	for n := 0; ; n++ {
		select {
		case a := <-got:
			if all := s.made(a); n == 0 || len(all) != 1 || *all[0].Data == "" {
				t.Errorf("%s", a.text)
			}
			return
		case <-time.After(50 * time.Millisecond):
			s.made(s.post("/store/a/update", fmt.Sprintf(`{"clientid":2,"adds":[{"group":"g","data":"%d"}]}`, n)))
		}
	}
}

// parking is stores whose claims wait until their context ends.
type parking struct {
	operations.Stores
	parked  chan struct{}
	unknown bool
}

func (p *parking) Claim(ctx context.Context, _ string, q *item.Claim) (*item.Item, error) {
	if q.Wait == 0 {
		return nil, nil
	}
	p.parked <- struct{}{}
	<-ctx.Done()
	if p.unknown {
		return nil, fmt.Errorf("%w: %w", task.ErrUnknown, context.Cause(ctx))
	}
	return nil, fmt.Errorf("no item was claimed: %w", context.Cause(ctx))
}

// What was asked of the owner and not answered may have claimed a task: that is no empty answer.
func TestDrain_AnswersParkedClaimsEmptyAtOnce(t *testing.T) {
	t.Parallel()
	for _, unknown := range []bool{false, true} {
		p := &parking{parked: make(chan struct{}), unknown: unknown}
		s := serve(t, p)
		const many = 20
		got := make(chan answer, many)
		for range many {
			go func() {
				a, _ := s.try("submitter", "POST", s.root+"/claim", `{"clientid":1,"group":"g","duration":60000,"wait":60000}`)
				got <- a
			}()
		}
		for range many {
			<-p.parked
		}
		begun := time.Now()
		s.stop()
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("drained after %s", took)
		}
		for range many {
			if a := <-got; unknown {
				s.refused(a, 503, "outcome")
			} else {
				s.want(a, 200, `{"tasks":[]}`)
			}
		}
	}
}

// failing is stores that fail.
type failing struct {
	operations.Stores
	err error
}

func (f *failing) Update(context.Context, string, *item.Update) ([]item.Item, error) {
	return nil, f.err
}

func (f *failing) Group(_ context.Context, _ string, p item.Page) ([]item.Item, bool, error) {
	if p.After == 0 {
		return []item.Item{{ID: 1, Group: p.Group}}, true, nil
	}
	return nil, false, f.err
}

func TestError_HasTheStatusOfItsKind(t *testing.T) {
	t.Parallel()
	f := &failing{}
	s := serve(t, f)
	for _, c := range []struct {
		err    error
		status int
		after  string
		want   string
	}{
		{fmt.Errorf("a: %w", task.ErrUnknown), 503, "1", "unknown"},
		{&task.OverloadError{Cause: "the shard is full", RetryAfter: 3 * time.Second}, 429, "3", "full"},
		{&task.LimitError{Field: "items of the shard", Limit: 2, Got: 3}, 400, "", "items of the shard"},
		{fmt.Errorf("a: %w", context.DeadlineExceeded), 503, "1", "deadline"},
		{fmt.Errorf("a: %w", task.ErrOtherRequest), 422, "", "request"},
		{errors.New("a secret"), 500, "", "wrong on the server"},
		{&item.ConflictError{Store: "a", Problems: []item.Problem{{Field: "depends", ID: 1, Text: "no"}, {Field: "adds", Text: "no"}}}, 409, "", "depends: task 1: no\nadds: no"},
	} {
		f.err = c.err
		got := s.post("/store/a/update", `{"clientid":1,"adds":[{"group":"g"}]}`)
		s.refused(got, c.status, c.want)
		if got.header.Get("Retry-After") != c.after {
			t.Errorf("%v: Retry-After %q", c.err, got.header.Get("Retry-After"))
		}
	}
	// Half a list is cut off, as it would look like a whole one otherwise.
	if got, err := s.try("viewer", "GET", "/store/a/group/g", ""); err == nil {
		t.Errorf("%d %s", got.status, got.text)
	}
}
