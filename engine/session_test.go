package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
	"taskledger/task"
)

var errGivesUp = errors.New("refused for good")

// ending is a store whose watches of mail and members a test ends, as a refusal does.
type ending struct {
	store.Store
	letters, members chan struct{} // what is sent ends one of them
	answers          atomic.Int32  // times to end at once
}

func (s *ending) Batches(ctx context.Context, shard int) iter.Seq2[store.MailboxBatch, error] {
	if shard != 0 {
		return s.Store.Batches(ctx, shard)
	}
	return endedBy(ctx, s.letters, func(ctx context.Context) iter.Seq2[store.MailboxBatch, error] { return s.Store.Batches(ctx, shard) })
}

func (s *ending) WatchMembers(ctx context.Context) iter.Seq2[store.Membership, error] {
	return endedBy(ctx, s.members, s.Store.WatchMembers)
}

func (s *ending) Answers(ctx context.Context, sender string) iter.Seq2[store.MailboxAnswer, error] {
	if s.answers.Add(-1) >= 0 {
		return func(yield func(store.MailboxAnswer, error) bool) { yield(store.MailboxAnswer{}, errGivesUp) }
	}
	return s.Store.Answers(ctx, sender)
}

// endedBy is a watch that ends with an error when something is sent.
func endedBy[V any](ctx context.Context, over <-chan struct{}, watch func(context.Context) iter.Seq2[V, error]) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			select {
			case <-over:
				cancel(errGivesUp)
			case <-ctx.Done():
			}
		}()
		for v, err := range watch(ctx) {
			if !yield(v, err) {
				return
			}
		}
		if err := context.Cause(ctx); errors.Is(err, errGivesUp) {
			var none V
			yield(none, err)
		}
	}
}

// A node that hears of nothing any more must not stay a member that others wait for.
func TestSession_EndsWithItsWatches(t *testing.T) {
	t.Parallel()
	for what, watch := range map[string]func(*ending) chan struct{}{
		"letters": func(s *ending) chan struct{} { return s.letters },
		"members": func(s *ending) chan struct{} { return s.members },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 2})
			s := &ending{letters: make(chan struct{}), members: make(chan struct{})}
			n := c.StartNode("a", func(cfg *cfg) { s.Store, cfg.Store = cfg.Store, s })
			session := n.SessionID()
			watch(s) <- struct{}{}
			testcluster.Await(t, "another session", func() bool { id := n.SessionID(); return id != "" && id != session })
		})
	}
}

func TestClient_ReadsAnswersAgainAfterARefusal(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{NoNATS: true})
	j := newJob(task.Policy{})
	c.StartNode("a", nil, j)
	s := &ending{}
	s.answers.Store(2)
	client := c.StartClient("caller", func(cfg *engine.ClientConfig) { s.Store, cfg.Store = cfg.Store, s })
	f := j.submit(t, client, "x")
	j.next(t).succeed("1")
	want(t, f, "1")
}

// The function ends with its context, as functions do. That its node lost its session is no failure of the task.
func TestSession_EndedIsALossAndNoFailure(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{MaxAttempts: 1})
	a := c.StartNode("a", noSlots)
	b := c.StartNode("b", noShards, j)
	for i := range 5 {
		id := events.TaskID(fmt.Sprint("x", i))
		f := j.submit(t, a, id)
		j.next(t)
		endSession(t, c, b)
		j.next(t).succeed("1")
		want(t, f, "1")
		wantHistory(t, a.Client, id, "Created Started Lost Started Succeeded")
	}
}

// The function ignores its context and succeeds long after its session: the outcome does not count.
func TestSession_OutcomeOfAnEndedOneIsRefused(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(task.Policy{})
	j.stubborn = true
	a := c.StartNode("a", noSlots)
	b := c.StartNode("b", noShards, j)
	f := j.submit(t, a, "x")
	first := j.next(t)
	endSession(t, c, b)
	second := j.next(t)
	first.succeed("1")
	j.nothing(t)
	second.succeed("2")
	want(t, f, "2")
	wantHistory(t, a.Client, "x", "Created Started Lost Started Succeeded")
}

// unrenewed is a store whose renewals can be made to fail.
type unrenewed struct {
	store.Store
	broken atomic.Bool
}

func (s *unrenewed) under(c *cfg) {
	s.Store = c.Store
	c.Store = s
}

func (s *unrenewed) Renew(ctx context.Context, session store.Session) error {
	if s.broken.Load() {
		return errors.New("no answer")
	}
	return s.Store.Renew(ctx, session)
}

// Leave does not get through either: it would end the session before the test has looked.
func (s *unrenewed) Leave(ctx context.Context, session store.Session) error {
	if s.broken.Load() {
		return errors.New("no answer")
	}
	return s.Store.Leave(ctx, session)
}

// By its own clock the node knows earlier than etcd that its session is over: its attempts end while the key is there.
func TestSession_UnrenewedEndsItsAttemptsBeforeItsLease(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{TTL: 5 * time.Second})
	j := newJob(task.Policy{})
	s := &unrenewed{}
	a := c.StartNode("a", noSlots)
	b := c.StartNode("b", with(noShards, s.under), j)
	f := j.submit(t, a, "x")
	r := j.next(t)
	old := b.SessionID()
	s.broken.Store(true)
	select {
	case <-r.ctx.Done():
	case <-time.After(soon):
		t.Fatal("the attempt goes on")
	}
	if got, err := c.Etcd.Get(within(t), nodeKey(old)); err != nil || len(got.Kvs) != 1 {
		t.Errorf("node key is %v, %v; want it still there: nobody else may run the task yet", got, err)
	}
	s.broken.Store(false)
	j.next(t).succeed("1")
	want(t, f, "1")
	wantHistory(t, a.Client, "x", "Created Started Lost Started Succeeded")
}

// stoppedClock is a wall clock that can be made to block whoever reads it.
type stoppedClock struct {
	mu sync.RWMutex
}

func (s *stoppedClock) now() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return time.Now()
}

// The owner's loop hangs while everything else of the node is well. A session that went on being renewed would keep
// the shards from everybody for ever.
func TestSession_IsNotRenewedWhileAnOwnerHangs(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{TTL: 6 * time.Second})
	j := newJob(task.Policy{})
	clock := &stoppedClock{}
	hung := c.StartNode("hung", with(noSlots, func(c *cfg) { c.Now = clock.now }))
	client := c.StartClient("caller", nil)
	j.submit(t, client, "before")
	session := hung.SessionID()
	clock.mu.Lock()
	goOn := sync.OnceFunc(clock.mu.Unlock)
	t.Cleanup(goOn)
	submitted := make(chan *engine.Future, 1)
	go func() {
		f, err := client.Submit(within(t), j, nil, task.SubmitOptions{ID: "x"})
		if err != nil {
			t.Errorf("submit: %v", err)
		}
		submitted <- f
	}()
	testcluster.Await(t, "the end of the session", func() bool {
		got, err := c.Etcd.Get(within(t), nodeKey(session))
		return err == nil && len(got.Kvs) == 0
	})
	c.StartNode("well", nil, j)
	f := <-submitted
	for range 2 {
		j.next(t).succeed("1")
	}
	want(t, f, "1")
	goOn()
	testcluster.Await(t, "the node is back as a new one", func() bool { id := hung.SessionID(); return id != "" && id != session })
}
