package task_test

import (
	"slices"
	"testing"

	"taskledger/task"
)

func TestSum_AddsUpByBehaviorStatusAndSubstatus(t *testing.T) {
	count := func(behavior string, status task.Status, substatus task.Substatus, tasks int64) task.Count {
		return task.Count{Behavior: behavior, Status: status, Substatus: substatus, Tasks: tasks}
	}
	got := task.SumCounts([]task.Count{
		count("b", task.Failure, task.SubFinal, 1),
		count("a", task.Created, task.SubReady, 2),
		count("b", task.Failure, task.SubFinal, 3),
	})
	want := []task.Count{count("a", task.Created, task.SubReady, 2), count("b", task.Failure, task.SubFinal, 4)}
	if !slices.Equal(got, want) {
		t.Errorf("sum %v, want %v", got, want)
	}
}
