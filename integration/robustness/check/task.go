package check

import (
	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// task is all that the run tells of one task.
type task struct {
	id         string
	shard      *journal
	steps      []step
	broken     bool // the fold stopped
	operations []*history.Operation
	executions []*history.Execution
	brook      brookTask
}

// known reports whether the task's steps are all there are, and why each of them happened can be told.
func (t *task) known() bool {
	return !t.broken && !t.shard.broken && !t.shard.works.Left(events.TaskID(t.id))
}

// last is the state at the end.
func (t *task) last() *state {
	if len(t.steps) == 0 {
		return &state{}
	}
	return &t.steps[len(t.steps)-1].state
}
