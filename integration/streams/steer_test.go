package streams_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/task"
	"taskledger/work"
)

func TestStream_SuspendedAndResumedRepeatsLittleAndGoesOnWhereItWasReset(t *testing.T) {
	t.Parallel()
	s := many(900, 50)
	var limit atomic.Uint64 // changes behind it do not end
	limit.Store(300)
	w := newWorld(t, s, 0, task.Policy{}, func(w *world, node string, s *stream) {
		s.Threads = 4
		w.fetch(s)
		s.Process = func(ctx context.Context, c work.Change[change]) error {
			if c.Value.Place > limit.Load() {
				<-ctx.Done()
				return context.Cause(ctx)
			}
			a, _ := behaviors.Attempt(ctx)
			return errors.Join(short(ctx, time.Millisecond), w.target.apply(node, a.Token.Ref, c.Value))
		}
	})
	w.submit()
	o := w.client.Operations()
	stop := func(at int) {
		t.Helper()
		w.awaitDone(at)
		if err := o.SetWorkToken(w.within(), followed, "1", "while it runs"); err == nil {
			t.Error("the token is set while the stream runs")
		}
		w.must(o.Suspend(w.within(), followed, "lunch"))
		w.await("it is suspended", func() bool { return w.suspended() })
	}
	stop(200)
	limit.Store(600)
	w.must(o.Resume(w.within(), followed))
	stop(500)
	if _, again := w.target.count(); again > 100 {
		t.Errorf("%d changes were processed again, want those in flight", again)
	}
	w.judge()
	w.must(o.SetWorkToken(w.within(), followed, "50", "once more from there"))
	done, before := w.target.count()
	limit.Store(uint64(len(s.all)))
	w.must(o.Resume(w.within(), followed))
	w.awaitStatus(followed, task.Success)
	w.target.wantAll(t, s)
	if _, again := w.target.count(); again-before < done-50 || again-before > done {
		t.Errorf("%d changes were processed again, want the %d behind 50 that were processed", again-before, done-50)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.begins[len(w.begins)-1]; last.token != "50" {
		t.Errorf("it went on behind %q, want 50", last.token)
	}
}

// suspended reports whether the stream is suspended, and nothing of it runs.
func (w *world) suspended() bool {
	w.Helper()
	is, err := w.client.Operations().WorkLinear(w.within(), followed)
	w.must(err)
	return is.State == "suspended" && len(is.Open) == 0
}
