package work

import (
	"fmt"

	"taskledger/task"
)

// SomeWait reports whether a task has still something to do.
func SomeWait(tasks []task.Task) bool {
	for i := range tasks {
		if t := &tasks[i]; t.OnNode() || !t.Final() && !t.Suspended {
			return true
		}
	}
	return false
}

// Waiting names tasks that have still something to do.
func Waiting(tasks []task.Task) (all []string) {
	for i := range tasks {
		if t := &tasks[i]; SomeWait(tasks[i : i+1]) {
			all = append(all, fmt.Sprintf("%s (%s, attempt %d)", t.ID, t.Status, t.Attempt))
		}
	}
	return all
}

// EventsOf counts the events of tasks.
func EventsOf(tasks []task.Task) (n uint64) {
	for i := range tasks {
		n += tasks[i].Details.Seq
	}
	return n
}
