package ui_test

import (
	"context"
	"fmt"
	"testing"

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
