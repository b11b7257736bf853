package api

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/events"
	"taskledger/task"
)

const (
	maxChanged     = 1000
	changedAtOnce  = 64
	verbsOfChanges = "cancel, suspend, resume, retry, run-now or delete"
)

// Change asks for one operation on many tasks.
type Change struct {
	Operation operations.Verb `json:"operation"` // cancel, suspend, resume, retry, run-now or delete
	IDs       []events.TaskID `json:"ids"`
	// Versions holds the version of each task that the caller has seen, in the order of IDs: a task with another
	// version is left as it is.
	Versions []events.Position `json:"versions,omitempty"`
	Reason   string            `json:"reason,omitempty"` // for cancel and suspend only
}

// ChangeAnswer holds the result of each task, in order.
type ChangeAnswer struct {
	Tasks []ChangedTask `json:"tasks"`
}

// ChangedTask holds the result of one task: nothing but its id where it was changed.
type ChangedTask struct {
	ID events.TaskID `json:"id"`
	// NewLife says that a task to retry was forgotten: it has begun another life, as it was recorded.
	NewLife bool             `json:"new_life,omitempty"`
	Problem *problem.Problem `json:"problem,omitempty"`
}

// changes serves the routes that change tasks.
type changes struct {
	operator operations.Operator
	reader   operations.Reader
	works    func() operations.Works
}

func (s changes) change(c *Call) error {
	var ask Change
	if err := c.Read(&ask); err != nil {
		return err
	}
	if _, is := verbs[ask.Operation]; !is && ask.Operation != operations.Delete {
		return invalid("operation", "%.32q: want %s", ask.Operation, verbsOfChanges)
	}
	if ask.Reason != "" && ask.Operation != operations.Cancel && ask.Operation != operations.Suspend {
		return invalid("reason", "it is of cancel and suspend alone")
	}
	if err := checkReason(ask.Reason); err != nil {
		return err
	}
	if n := len(ask.IDs); n == 0 || n > maxChanged {
		return invalid("ids", "%d ids: want 1 to %d", n, maxChanged)
	}
	if n := len(ask.Versions); n != 0 && n != len(ask.IDs) {
		return invalid("versions", "%d versions: want one for each of the %d ids, or none", n, len(ask.IDs))
	}
	seen := map[events.TaskID]bool{}
	for i, id := range ask.IDs {
		if err := checkID(fmt.Sprintf("ids[%d]", i), id); err != nil {
			return err
		}
		if seen[id] {
			return invalid("ids", "%s is there more than once", id)
		}
		if len(ask.Versions) > 0 && ask.Versions[i].Ref == 0 {
			return invalid("versions", "that of %s: want the version of a task", id)
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
					stack := string(debug.Stack())
					c.shared.log.ErrorContext(c.ctx, "a change has panicked: a bug", "panic", v, "stack", stack)
					answer.Tasks[i].Problem = problem.New(problem.Internal, "")
				}
			}()
			anew, err := s.changeOne(c, i, ask)
			if answer.Tasks[i].NewLife = anew; err != nil {
				answer.Tasks[i] = ChangedTask{ID: id, Problem: c.problemOf(err)}
			}
			return nil
		})
	}
	_ = g.Wait() // each task has its own error
	return c.JSON(http.StatusOK, answer)
}

// changeOne changes the task of an id by its number.
func (s changes) changeOne(c *Call, number int, ask Change) (anew bool, err error) {
	id := ask.IDs[number]
	if !c.by.MayTask(id) {
		return false, problem.New(problem.NotFound, "there is no task %s", id)
	}
	if err := known(c.ctx, c, s.reader, id, ask.Operation); err != nil {
		return false, err
	}
	if len(ask.Versions) == 0 {
		return s.operator.Operate(c.ctx, ask.Operation, string(id), ask.Reason)
	}
	return s.operateSeen(c.ctx, ask.Operation, &task.Task{ID: id, Version: ask.Versions[number]}, ask.Reason)
}
