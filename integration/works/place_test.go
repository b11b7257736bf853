package works_test

import (
	"fmt"
	"strings"
	"testing"

	"taskledger/events"
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
	const most = 10
	for n := 1; n <= most; n++ {
		id := events.TaskID(fmt.Sprint(steered, n))
		w.submit(w.of, id).Close()
		var is progress.Work
		w.await("all workers have buckets", func() (all bool) {
			is, all = w.progress(id)
			return all && len(is.Open) == 9
		})
		even, late := len(is.Workers.Nodes) == 3, w.startedLate(id)
		for _, at := range is.Workers.Nodes {
			even = even && at.Workers >= 2 && at.Workers <= 4
		}
		w.must(w.client.Operations().Cancel(w.within(), id, ""))
		w.workersEnded(id)
		switch {
		case even:
			return
		case !late || n == most:
			t.Fatalf("workers by node: %+v, want about three each", is.Workers.Nodes)
		}
		t.Logf("another draw: a worker gave up its wait for a slot where fewest run: %+v", is.Workers.Nodes)
	}
}

// startedLate reports whether a worker waited about as long as the owner waits for a slot where fewest run. A busy
// machine offers slots later.
func (w *world) startedLate(id events.TaskID) (late bool) {
	w.Helper()
	const waits = 400 // ms
	for is, err := range w.client.List(w.within(), task.Filter{Affinity: id.Affinity(), Limit: 100}) {
		w.must(err)
		late = late || strings.HasPrefix(string(is.ID), string(id)+".w") && is.StartedAt-is.CreatedAt >= waits
	}
	return late
}
