package streams_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work"
)

// faulty is a stream whose changes of some places fail.
type faulty struct {
	*world
	mu    sync.Mutex
	codes map[uint64]string // of errors, by place
}

func (f *faulty) set(place uint64, code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.codes[place] = code
}

func newFaulty(t *testing.T, s *script, policy task.Policy, rules ...work.Rule) *faulty {
	t.Helper()
	f := &faulty{codes: map[uint64]string{}}
	f.world = newWorld(t, s, 0, policy, func(w *world, node string, s *stream) {
		s.Threads, s.Rules = 3, rules
		w.fetch(s)
		s.Process = func(ctx context.Context, c work.Change[change]) error {
			f.mu.Lock()
			code := f.codes[c.Value.Place]
			f.mu.Unlock()
			if code != "" {
				return behaviors.Code(code, errors.New("not now"), nil)
			}
			a, _ := behaviors.Attempt(ctx)
			return w.target.apply(node, a.Token.Ref, c.Value)
		}
	})
	return f
}

// run runs the stream until it has ended well.
func (f *faulty) run() {
	f.Helper()
	if _, is := f.show(followed); !is {
		f.submit()
	} else {
		_, err := f.client.Operations().Retry(f.within(), followed)
		f.must(err)
	}
	want := uint64(len(f.script.all))
	f.await("the token is behind the last change", func() bool {
		all := f.moved()
		of, _ := f.show(followed)
		return len(all) > 0 && place(all[len(all)-1].Token) == want && of.Status == task.Success
	})
}

// wantAt reports an error unless an object has a change last.
func (f *faulty) wantAt(key string, place uint64) {
	f.Helper()
	f.target.mu.Lock()
	defer f.target.mu.Unlock()
	if is := f.target.objects[key].place; is != place {
		f.Errorf("%s is at change %d, want %d", key, is, place)
	}
}

func (f *faulty) gone(id events.TaskID) {
	f.Helper()
	f.await("the hold is gone", func() bool {
		_, is := f.show(id)
		return !is
	})
}

func TestStream_ChangeRetriedLaterIsFollowedByThoseOfItsKey(t *testing.T) {
	t.Parallel()
	s := new(script)
	s.add("a", "b", "a", "b", "a") // 1 to 5
	policy := task.Policy{
		MaxAttempts: 2,
		Backoff:     task.Backoff{Base: 10 * time.Millisecond, Max: 20 * time.Millisecond},
	}
	f := newFaulty(t, s, policy, work.Rule{React: work.RetryLater})
	f.set(3, "busy")
	f.run()
	f.wantAt("a", 1)
	f.wantAt("b", 4)
	hold := events.HoldID(followed, 1)
	f.awaitStatus(hold, task.Failure)

	s.add("a", "b") // 6, 7: the hold has failed for good, and keeps its key
	f.run()
	f.wantAt("a", 1)
	f.wantAt("b", 7)
	f.set(3, "")
	_, err := f.client.Operations().Retry(f.within(), hold)
	f.must(err)
	f.gone(hold)
	f.wantAt("a", 6)

	s.add("a") // 8: the key is free
	f.run()
	f.target.wantAll(t, s)
}

func TestStream_ParkedChangeWaitsForItsResumption(t *testing.T) {
	t.Parallel()
	s := new(script)
	s.add("a", "b", "a", "b") // 1 to 4
	f := newFaulty(t, s, task.Policy{}, work.Rule{Code: "poison", React: work.Park})
	f.set(1, "poison")
	f.set(2, "poison")
	f.run()
	byKey := map[string]events.TaskID{}
	for i := range uint32(2) {
		id := events.HoldID(followed, i+1)
		if hold, _ := f.show(id); !hold.Suspended {
			t.Errorf("%s is not suspended: %+v", id, hold)
		}
		for ev, err := range f.client.Ledger().History(f.within(), followed) {
			f.must(err)
			if h, is := ev.Body.(*events.ChangeHeld); is && h.Hold == i+1 {
				byKey[h.Key] = id
			}
		}
	}
	s.add("a", "b", "c") // 5 to 7
	f.run()
	f.wantAt("a", 0)
	f.wantAt("c", 7)
	f.set(1, "")
	f.must(f.client.Operations().Resume(f.within(), byKey["a"]))
	f.gone(byKey["a"])
	f.wantAt("a", 5)
	f.must(f.client.Operations().Delete(f.within(), byKey["b"]))
	f.gone(byKey["b"])
	f.wantAt("b", 0)
}

func TestStream_DeletedEndsItsHolds(t *testing.T) {
	t.Parallel()
	s := new(script)
	s.add("a", "b", "c")
	f := newFaulty(t, s, task.Policy{}, work.Rule{React: work.Park})
	for place := range uint64(3) {
		f.set(place+1, "poison")
	}
	f.run()
	f.must(f.client.Operations().Delete(f.within(), followed))
	for i := range uint32(3) {
		f.gone(events.HoldID(followed, i+1))
	}
	s.all, s.last = nil, nil
	s.add("a")
	f.set(1, "")
	f.run()
	f.wantAt("a", 1)
	if b := f.begins[len(f.begins)-1]; b.token != "" {
		t.Errorf("the new life begins behind %q", b.token)
	}
}
