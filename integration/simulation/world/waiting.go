package world

import (
	"fmt"

	"taskledger/task"
)

// stillWaiting names tasks that have still something to do. Repetitions have nothing to do while the store is filled.
func stillWaiting(tasks []task.Task, filled bool) (all []string) {
	for i := range tasks {
		t := &tasks[i]
		repeats := t.Details.RunEnded && t.Details.WaitsSince == 0
		if t.OnNode() || !t.Final() && !t.Suspended && !(filled && repeats) {
			all = append(all, fmt.Sprintf("%s (%s, attempt %d)", t.ID, t.Status, t.Attempt))
		}
	}
	return all
}

// eventsOf counts the events of tasks.
func eventsOf(tasks []task.Task) (n uint64) {
	for i := range tasks {
		n += tasks[i].Details.Seq
	}
	return n
}
