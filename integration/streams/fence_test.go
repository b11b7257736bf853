package streams_test

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work"
)

// A target that compares fencing tokens takes each change of a key from the stream, from its hold, and from the stream
// again, all in one attempt of that, and refuses a late one of an attempt of the hold.
func TestStream_GoesOnBehindAHoldWithATokenThatRefusesItsLateAttempts(t *testing.T) {
	t.Parallel()
	s := new(script)
	s.add("a", "a") // 1, 2
	var ended atomic.Bool
	var tries atomic.Int64
	var late atomic.Uint64
	policy := task.Policy{Backoff: task.Backoff{Base: 10 * time.Millisecond, Max: 20 * time.Millisecond}}
	w := newWorld(t, s, 0, policy, func(w *world, node string, s *stream) {
		s.Rules = []work.Rule{{Code: "busy", React: work.RetryLater}}
		s.Changes = func(ctx context.Context, _ struct{}, token string) iter.Seq2[work.Change[change], error] {
			return func(yield func(work.Change[change], error) bool) {
				for at := place(token); !ended.Load() && ctx.Err() == nil; short(ctx, 10*time.Millisecond) {
					for _, c := range w.script.from(at) {
						if at = c.Place; !yield(work.Change[change]{Key: c.Key, Token: strconv.FormatUint(at, 10), Value: c}, nil) {
							return
						}
					}
				}
			}
		}
		s.Process = func(ctx context.Context, c work.Change[change]) error {
			a, _ := behaviors.Attempt(ctx)
			if c.Value.Place == 2 && tries.Add(1) <= 2 { // in the stream, and in the first attempt of its hold
				late.Store(uint64(a.Token.Ref))
				return behaviors.Code("busy", errors.New("not now"), nil)
			}
			return w.target.apply(node, a.Token.Ref, c.Value)
		}
	})
	w.submit()
	w.awaitDone(2)
	w.await("the hold is gone", func() bool {
		_, is := w.show(events.HoldID(followed, 1))
		return !is
	})
	s.add("a") // 3
	w.awaitDone(3)
	if err := w.target.apply("late", events.Ref(late.Load()), change{"a", 4, 3}); err == nil {
		t.Error("a late attempt of the hold writes behind the stream")
	}
	s.add("b", "a") // 4, 5
	w.awaitDone(5)
	ended.Store(true)
	w.awaitStatus(followed, task.Success)
	w.target.wantAll(t, s)
	if is, _ := w.show(followed); is.Attempt != 1 {
		t.Errorf("the stream has ended with attempt %d, want the first one", is.Attempt)
	}
}
