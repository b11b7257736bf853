package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/operations"

	"taskledger/events"
	"taskledger/task"
)

// crowded is a cluster with so many pages of tasks.
type crowded struct {
	operations.Direct
	pages int
	asked *int
}

func (c crowded) ListPage(_ context.Context, _ task.Filter, cursor string) (page task.Page, err error) {
	*c.asked++
	page.Tasks = []task.Task{{
		ID:        events.TaskID("t1." + cursor),
		Behavior:  "noop",
		Status:    task.Created,
		Substatus: task.SubReady,
	}}
	if page.Through = *c.asked == c.pages; !page.Through {
		page.Cursor = fmt.Sprint(*c.asked)
	}
	return page, nil
}

// The tasks of a prefix are counted by listing them: so many at most, and the answer says when it lacks some.
func TestBehaviors_OfTooManyTasksOfAPrefixAreCountedInPart(t *testing.T) {
	for pages, c := range map[int]struct {
		asked   int
		partial any
	}{3: {3, nil}, 200: {200, nil}, 201: {200, true}, 1_000_000: {200, true}} {
		asked := 0
		s, _ := serve(t, func(c *api.Config) { c.Client = crowded{c.Client.(operations.Direct), pages, &asked} })
		a := s.want(s.send("tenant", "GET", "/v1/behaviors", nil), 200, fmt.Sprintf(`"tasks":%d`, c.asked))
		if asked != c.asked || a.get(t, "partial") != c.partial {
			t.Errorf("of %d pages %d are listed: %s", pages, asked, a.text)
		}
	}
}

// varied counts tasks of more behaviors than are told by name, unless it is asked for one.
type varied struct{ operations.Direct }

func (varied) Counts(_ context.Context, behavior string) (all task.Counts, err error) {
	all.Rows = []task.Count{{Behavior: behavior, Status: task.Created, Substatus: task.SubReady, Tasks: 3}}
	if behavior == "" {
		all.Rows = []task.Count{{Behavior: "noop", Tasks: 2}, {Status: task.Created, Tasks: 7}}
	}
	return all, nil
}

func TestBehaviors_CountsTheOneThatIsAskedForHoweverManyThereAre(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) { c.Client = varied{c.Client.(operations.Direct)} })
	s.want(s.send("viewer", "GET", "/v1/behaviors", nil), 200,
		`{"behavior":"","status":"CREATED","substatus":"none","tasks":7}`)
	s.want(s.send("viewer", "GET", "/v1/behaviors?behavior=zzz", nil), 200,
		`[{"behavior":"zzz","status":"CREATED","substatus":"ready","tasks":3}]`)
	s.want(s.send("viewer", "GET", "/v1/behaviors?behavior="+strings.Repeat("z", 300), nil), 400, `"field":"behavior"`)
}
