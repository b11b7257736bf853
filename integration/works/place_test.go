package works_test

import (
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work/progress"
)

func TestWork_ItsWorkersStartWhereFewestOfThemRun(t *testing.T) {
	t.Parallel()
	s := shape{
		id:      "placed",
		items:   9,
		buckets: 9,
		workers: 9,
		limit:   -1,
	}
	w := &steer{shape: s, tally: newTally()}
	w.of = s.define("client", w.tally, untilEnd)
	w.world = newWorld(t, testcluster.Options{}, 9, func(node string) []task.Behavior {
		return []task.Behavior{s.define(node, w.tally, untilEnd)}
	}, "a", "b", "c")
	w.submit(w.of, steered).Close()
	var is progress.Work
	w.await("all workers have buckets", func() (all bool) {
		is, all = w.progress(steered)
		return all && len(is.Open) == 9
	})
	for _, at := range is.Workers.Nodes {
		if at.Workers < 2 || at.Workers > 4 || len(is.Workers.Nodes) != 3 {
			t.Errorf("workers by node: %+v, want about three each", is.Workers.Nodes)
		}
	}
	w.must(w.client.Operations().Cancel(w.within(), steered, ""))
	w.workersEnded(steered)
}
