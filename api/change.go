package api

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/events"
	"taskledger/store"
)

const (
	maxChanged     = 1000
	changedAtOnce  = 64
	verbsOfChanges = "cancel, suspend, resume, retry, run-now or delete"
)

// Change asks for the same of many tasks.
type Change struct {
	Operation operations.Verb `json:"operation"` // cancel, suspend, resume, retry, run-now or delete
	IDs       []events.TaskID `json:"ids"`
	Reason    string          `json:"reason,omitempty"` // for cancel and suspend only
}

// ChangeAnswer is what became of each, in order.
type ChangeAnswer struct {
	Tasks []ChangedTask `json:"tasks"`
}

// ChangedTask is what became of one task: nothing but its id where it was changed.
type ChangedTask struct {
	ID      events.TaskID    `json:"id"`
	NewLife bool             `json:"new_life,omitempty"` // a task to retry was forgotten: it has begun another life, as it was recorded
	Problem *problem.Problem `json:"problem,omitempty"`
}

func (c *Call) change() error {
	var ask Change
	if err := c.Read(&ask); err != nil {
		return err
	}
	if _, is := verbs[ask.Operation]; !is && ask.Operation != operations.Delete {
		return &store.InvalidError{Field: "operation", Problem: fmt.Sprintf("%.32q: want %s", ask.Operation, verbsOfChanges)}
	}
	if ask.Reason != "" && ask.Operation != operations.Cancel && ask.Operation != operations.Suspend {
		return &store.InvalidError{Field: "reason", Problem: "it is of cancel and suspend alone"}
	}
	if n := len(ask.IDs); n == 0 || n > maxChanged {
		return &store.InvalidError{Field: "ids", Problem: fmt.Sprintf("%d ids: want 1 to %d", n, maxChanged)}
	}
	seen := map[events.TaskID]bool{}
	for i, id := range ask.IDs {
		if err := id.Validate(); err != nil {
			return &store.InvalidError{Field: "ids", Problem: fmt.Sprintf("id %d: %s", i, err)}
		}
		if seen[id] {
			return &store.InvalidError{Field: "ids", Problem: fmt.Sprintf("%s is there more than once", id)}
		}
		seen[id] = true
	}
	answer := ChangeAnswer{make([]ChangedTask, len(ask.IDs))}
	var g errgroup.Group
	g.SetLimit(changedAtOnce)
	for i, id := range ask.IDs {
		g.Go(func() error {
			answer.Tasks[i].ID = id
			defer func() {
				if v := recover(); v != nil {
					c.api.log.ErrorContext(c.ctx, "a change has panicked: a bug", "panic", v, "stack", string(debug.Stack()))
					answer.Tasks[i].Problem = problem.New(problem.Internal, "")
				}
			}()
			anew, err := c.changeOne(id, ask)
			if answer.Tasks[i].NewLife = anew; err != nil {
				answer.Tasks[i] = ChangedTask{ID: id, Problem: c.told(err)}
			}
			return nil
		})
	}
	_ = g.Wait() // each task has its own error
	return c.JSON(http.StatusOK, answer)
}

func (c *Call) changeOne(id events.TaskID, ask Change) (anew bool, err error) {
	if !c.by.MayTask(id) {
		return false, problem.New(problem.NotFound, "there is no task %s", id)
	}
	if err := c.known(id, ask.Operation); err != nil {
		return false, err
	}
	return c.api.operator.Operate(c.ctx, ask.Operation, string(id), ask.Reason)
}
