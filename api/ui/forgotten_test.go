package ui_test

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"taskledger/api/operations"
	"taskledger/api/ui"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/task"
	"taskledger/tasklog"
)

// forgetful is a cluster that has forgotten a task, or all of them, whose logs are kept.
type forgetful struct {
	operations.Client
	of  events.TaskID // "" = all
	log *written
}

func (c forgetful) forgot(id events.TaskID) error {
	if c.of != "" && c.of != id {
		return nil
	}
	return fmt.Errorf("task %s: %w", id, task.ErrNotFound)
}

func (c forgetful) Get(ctx context.Context, id events.TaskID) (t task.Task, err error) {
	if err := c.forgot(id); err != nil {
		return t, err
	}
	return c.Client.Get(ctx, id)
}

func (c forgetful) GetForgotten(ctx context.Context, id events.TaskID) (task.Task, error) {
	t, err := c.Client.GetForgotten(ctx, id)
	t.Forgotten = c.forgot(id) != nil
	return t, err
}

func (c forgetful) Explain(ctx context.Context, id events.TaskID) (e engine.Explanation, err error) {
	if err := c.forgot(id); err != nil {
		return e, err
	}
	return c.Client.Explain(ctx, id)
}

func (c forgetful) Log(ctx context.Context, id events.TaskID, s tasklog.Selection) (tasklog.Told, error) {
	return c.log.Log(ctx, id, s)
}

// What retention has removed changes no more, and each look at it searches the journal: no open tab asks for it again.
func TestForgotten_ATaskAndItsLogAreNotAskedForAgain(t *testing.T) {
	s := serve(t)
	s.submit("noop", "a/1", "{}")
	for of, again := range map[events.TaskID]bool{"a/1": false, "a/2": true} {
		other := serveClient(t, forgetful{
			Client: operations.Direct{Client: s.node.Client},
			of:     of,
			log:    &written{lines: []string{"one"}, ended: true},
		}, ui.Config{})
		for path, has := range map[string]string{"/ui/tasks/a~1": "SUCCESS", "/ui/tasks/a~1/logs": "nothing follows"} {
			got := other.want(other.get("viewer", path), 200, has)
			if again {
				other.want(got, 200, " data-live ")
			} else {
				other.wantNot(got, "data-live")
			}
		}
	}
}

// past is a cluster that has forgotten a task, and whose journal does not answer.
type past struct{ silent }

func (past) GetForgotten(_ context.Context, id events.TaskID) (task.Task, error) {
	return task.Task{
		ID:        id,
		Behavior:  "noop",
		Status:    task.Success,
		Substatus: task.SubFinal,
		Forgotten: true,
	}, nil
}

func (past) Explain(_ context.Context, id events.TaskID) (e engine.Explanation, err error) {
	return e, fmt.Errorf("task %s: %w", id, task.ErrNotFound)
}

// What is missing on the page of a forgotten task is asked for again.
func TestForgotten_APageThatIsNotWholeIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serveClient(t, past{}, ui.Config{})
		s.want(s.get("viewer", "/ui/tasks/a~1"), 200, ", forgotten", "This page is not whole", " data-live ")
	})
}

// The search box leads to the page of a task that was forgotten, and does not search the journal itself.
func TestForgotten_ATaskIsFoundByTheLinkBesideTheSearchBox(t *testing.T) {
	s := serve(t)
	ids := map[events.TaskID]string{"a/1": "/ui/tasks/a~1", "plain": "/ui/tasks/plain"}
	for id := range ids {
		s.submit("noop", string(id), "{}")
	}
	client := &searched{Client: forgetful{Client: operations.Direct{Client: s.node.Client}}}
	other := serveClient(t, client, ui.Config{})
	for id, path := range ids {
		got := other.want(other.get("viewer", "/ui/tasks?find="+url.QueryEscape(string(id))), 200,
			`<a href="`+path+`">its page</a> looks in the journal`, " in memory")
		other.wantNot(got, "there is no task")
		if n := client.searches.Load(); n > 0 {
			t.Errorf("it has searched %d times for %s", n, id)
		}
		other.want(other.get("viewer", path), 200, ", forgotten")
		client.searches.Store(0)
	}
	found := s.want(s.get("viewer", "/ui/tasks?find=a%2F1"), 303)
	s.wantNot(found, "its page")
	s.wantNot(s.want(s.get("viewer", "/ui/tasks?find=a%20b"), 200), "its page")
	s.wantNot(s.want(s.get("viewer", "/ui/tasks"), 200), "its page")
}

// searched counts the searches for tasks that may have been forgotten.
type searched struct {
	operations.Client
	searches atomic.Int64
}

func (c *searched) GetForgotten(ctx context.Context, id events.TaskID) (task.Task, error) {
	c.searches.Add(1)
	return c.Client.GetForgotten(ctx, id)
}
