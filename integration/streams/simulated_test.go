package streams_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/internal/testkit"
	"taskledger/task"
	"taskledger/work"
)

// A worker is killed in the simulation and another one in what follows; new changes come between both.
func TestStream_SimulatedFirstAppliesWhatWasSimulatedAndNoMore(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	const first, later = 400, 60
	s := many(first, 30)
	var mu sync.Mutex
	simulated := map[uint64]bool{}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(simulated)
	}
	more := sync.OnceFunc(func() {
		if n := count(); n != first {
			t.Errorf("%d changes are simulated when the first one is applied, want %d", n, first)
		}
		for range later {
			s.add("hot")
		}
	})
	w := newWorld(t, s, 0, task.Policy{Existing: task.RunAgain}, func(w *world, node string, s *stream) {
		w.simulates, s.ID, s.Threads = true, "do", 4
		w.fetch(s)
		s.Process = func(ctx context.Context, c work.Change[change]) error {
			wait := short(ctx, 5*time.Millisecond)
			if run, _ := work.Run(ctx); run.Mode == work.Simulate {
				mu.Lock()
				simulated[c.Value.Place] = true
				mu.Unlock()
				w.target.ran(node)
				return wait
			}
			more()
			a, _ := behaviors.Attempt(ctx)
			return errors.Join(wait, w.target.apply(node, a.Token.Ref, c.Value))
		}
	})
	w.submit()
	w.await("a part is simulated", func() bool { return count() > first/3 })
	w.crash(w.target.node())
	w.awaitDone(first / 2)
	w.crash(w.target.node())
	w.awaitStatus(followed, task.Success)
	w.judge()
	if done, _ := w.target.count(); done != first || count() != first {
		t.Errorf("%d changes are simulated and %d applied, want the %d that were there when it began", count(), done, first)
	}
	if all := w.moved(); len(all) == 0 || place(all[len(all)-1].Token) != first {
		t.Errorf("%d moves, which do not end where the simulation has", len(all))
	}

	w.submit()
	w.awaitDone(first + later)
	w.awaitStatus(followed, task.Success)
	w.target.wantAll(t, s)
	if count() != first+later {
		t.Errorf("%d changes are simulated in both runs, want %d", count(), first+later)
	}
}
