package works_test

import (
	"context"
	"fmt"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
	"taskledger/work"
)

// combinations returns the shapes of one or many partitions, buckets, workers and threads.
func combinations() (all []shape) {
	for i := range 16 {
		many := func(bit int, n int64) int64 {
			if i>>bit&1 == 1 {
				return n
			}
			return 1
		}
		all = append(all, shape{
			id:         fmt.Sprintf("numbers-%04b", i),
			partitions: int(many(0, 3)),
			items:      60,
			buckets:    many(1, 7),
			workers:    many(2, 4),
			threads:    many(3, 3),
		})
	}
	return all
}

func TestWork_EveryCombinationOfOneAndManyProcessesEachItemOnce(t *testing.T) {
	t.Parallel()
	shapes := combinations()
	tallies := make([]*tally, len(shapes))
	for i := range shapes {
		tallies[i] = newTally()
	}
	define := func(node string, i int) *work.Work[struct{}, int64] {
		return shapes[i].define(node, tallies[i], func(context.Context, int64) error { return nil })
	}
	w := newWorld(t, testcluster.Options{}, 0, func(node string) (all []task.Behavior) {
		for i := range shapes {
			all = append(all, define(node, i))
		}
		return all
	}, "a", "b", "c")
	for i, s := range shapes {
		id := events.TaskID(fmt.Sprintf("tenant%d/%s", i, s.id))
		r, err := w.submit(define("client", i), id).Wait(w.within())
		if err != nil {
			t.Errorf("%s: %v", s.id, err)
			continue
		}
		w.workersEnded(id)
		if r.Run != 1 || len(r.Partitions) != s.partitions {
			t.Errorf("%s: %+v", s.id, r)
		}
		for _, p := range r.Partitions {
			if p.Done != s.items || p.Failed+p.Skipped != 0 || p.Buckets != s.buckets {
				t.Errorf("%s: %+v", s.id, p)
			}
		}
		if n := len(tallies[i].times); n != s.partitions*int(s.items) || tallies[i].total() != n {
			t.Errorf("%s: %d items were processed %d times", s.id, n, tallies[i].total())
		}
	}
}
