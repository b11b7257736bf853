package traffic

import (
	"testing"

	"taskledger/integration/robustness/history"
)

func TestExecutions_CountsWhatRuns(t *testing.T) {
	o := NewExecutions()
	report := func(task, node string, begin, end int64) {
		o.Hear(&Report{Goes: end == 0, Execution: history.Execution{Task: task, Node: node, Begin: begin, End: end}})
	}
	report("a", "s1", 5, 0)
	report("b", "s1", 7, 0)
	report("c", "s2", 5, 0)
	report("d", "s1", 4, 0)
	report("d", "s1", 4, 6)
	if one, two := o.RunningOn("s1", 6), o.RunningOn("s1", 7); one != 1 || two != 2 {
		t.Errorf("%d run since 6 and %d since 7, want 1 and 2", one, two)
	}
}
