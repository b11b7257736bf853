package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

// writes is a store whose appends a test can spoil.
type writes struct {
	store.Store
	mu    sync.Mutex
	spoil func(write func() (int64, error)) (int64, error) // of the next append; nil: none
}

func (s *writes) under(c *cfg) {
	s.Store = c.Store
	c.Store = s
}

func (s *writes) next(spoil func(write func() (int64, error)) (int64, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spoil = spoil
}

func (s *writes) Append(ctx context.Context, o store.Ownership, after store.Head, entry []byte) (int64, error) {
	s.mu.Lock()
	spoil := s.spoil
	s.spoil = nil
	s.mu.Unlock()
	write := func() (int64, error) { return s.Store.Append(ctx, o, after, entry) }
	if spoil == nil {
		return write()
	}
	return spoil(write)
}

// A write that is refused, or of which nobody knows what became, ends the session: the shard must not stay with an
// owner that cannot write. What the caller asked for happens once, whether or not the write was applied.
func TestOwner_ThatCannotWriteStartsAgainAsANewNode(t *testing.T) {
	unknown := errors.New("outcome unknown")
	for name, spoil := range map[string]func(write func() (int64, error)) (int64, error){
		"Refused":           func(func() (int64, error)) (int64, error) { return 0, store.ErrRefused },
		"UnknownNotApplied": func(func() (int64, error)) (int64, error) { return 0, unknown },
		"UnknownButApplied": func(write func() (int64, error)) (int64, error) {
			if _, err := write(); err != nil {
				return 0, err
			}
			return 0, unknown
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := testcluster.New(t, testcluster.Options{Shards: 2})
			j := newJob(task.Policy{})
			s := &writes{}
			n := c.StartNode("n", s.under, j)
			session := n.SessionID()
			s.next(spoil)
			f := j.submit(t, n, "x")
			j.next(t).succeed("1")
			want(t, f, "1")
			if id := n.SessionID(); id == session {
				t.Errorf("the session %s goes on", id)
			}
			if n := j.count.Load(); n != 1 {
				t.Errorf("%d attempts were made, want 1", n)
			}
		})
	}
}

// The owner has none of the behavior's code. What it must know is in the journal.
func TestOwner_WithoutTheCodeRetriesAndGivesUp(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{MaxAttempts: 3, Backoff: task.Backoff{Base: time.Millisecond, Max: time.Millisecond}})
	a := c.StartNode("a", noSlots)
	c.StartNode("b", noShards, &crashing{j})
	f := j.submit(t, a, "x")
	var failure *task.Error
	if _, err := f.Wait(within(t)); !errors.As(err, &failure) || failure.Attempt != 3 {
		t.Errorf("error is %v, want the failure of attempt 3", err)
	}
	awaitTask(t, a.Client, "x", "has failed", func(task task.Task) bool { return task.Final() && task.Failures == 3 })
	if _, err := a.SubmitRaw(within(t), "nobody-has-it", nil, task.SubmitOptions{}); !errors.Is(err, task.ErrUnknownBehavior) {
		t.Errorf("raw submit of a behavior that no node runs: %v, want %v", err, task.ErrUnknownBehavior)
	}
}

// crashing is a job whose attempts panic.
type crashing struct{ *job }

func (*crashing) Run(context.Context, task.Attempt) task.Outcome { panic("no reason") }
