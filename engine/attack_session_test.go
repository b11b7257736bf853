package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

// nodeKey is the presence of a session.
func nodeKey(session string) string { return "taskledger/node/" + session }

// endSession revokes a node's lease, as etcd may do although it has just renewed it, and waits until the node has begun
// another session.
func endSession(t *testing.T, c *testcluster.Cluster, n *testcluster.Node) {
	t.Helper()
	old := n.SessionID()
	got, err := c.Etcd.Get(within(t), nodeKey(old))
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("node key of %s: %v, %v", old, got, err)
	}
	leases, err := c.Etcd.Leases(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range leases.Leases {
		if int64(l.ID) == got.Kvs[0].Lease {
			if _, err := c.Etcd.Revoke(within(t), l.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	testcluster.Await(t, "a new session", func() bool { id := n.SessionID(); return id != "" && id != old })
}

// The function ends with its context, as functions do. That its node lost its session is no failure of the task.
func TestSession_EndedIsALossAndNoFailure(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(engine.Policy{MaxAttempts: 1})
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
	j := newJob(engine.Policy{})
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
	j := newJob(engine.Policy{})
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

// The owner's loop hangs while everything else of the node is well. A session that went on being renewed would keep the
// shards from everybody for ever.
func TestSession_IsNotRenewedWhileAnOwnerHangs(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{TTL: 6 * time.Second})
	j := newJob(engine.Policy{})
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
		f, err := client.Submit(within(t), j, nil, engine.SubmitOptions{ID: "x"})
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

// A write that is refused, or of which nobody knows what became, ends the session: the shard must not stay with an owner
// that cannot write. What the caller asked for happens once, whether or not the write was applied.
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
			j := newJob(engine.Policy{})
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

// Offers were on their way when their session ended, and come to an owner that has seen its end. What they promise is
// worth nothing, and no further event will tell.
func TestOffer_OfAnEndedSessionKeepsNoTask(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(engine.Policy{})
	var offers atomic.Int32 // the fate of offers
	offers.Store(int32(hold))
	w := &wire{sent: func(lane string) fate {
		if lane == laneOffer {
			return fate(offers.Load())
		}
		return pass
	}}
	a := c.StartNode("a", noSlots)
	b := c.StartNode("b", with(noShards, w.through), j)
	testcluster.Await(t, "offers to every shard", func() bool { return w.holding() >= c.Shards() })
	offers.Store(int32(drop))
	endSession(t, c, b)
	w.release()
	f := j.submit(t, a, "x")
	j.nothing(t)
	offers.Store(int32(pass))
	r := j.next(t)
	r.succeed("1")
	want(t, f, "1")
	if r.Number > 2 || int(r.Lost) != r.Number-1 {
		t.Errorf("attempt %d after %d losses", r.Number, r.Lost)
	}
}

// A node that hears of no change of the membership still finds out: watches only hasten.
func TestMembers_ChangesThatAWatchMissesAreFoundByReading(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	j := newJob(engine.Policy{})
	s := &watched{}
	a := c.StartNode("a", nil, j)
	c.StartNode("b", s.under, j)
	f := j.submit(t, a, "x")
	r := j.next(t)
	s.silent.Store(true)
	a.Kill()
	again := j.next(t)
	if again.Number != 2 || r.Number != 1 {
		t.Errorf("attempt %d after %d, want 2 after 1", again.Number, r.Number)
	}
	again.succeed("1")
	client := c.StartClient("caller", nil)
	want(t, client.Attach("x"), "1")
	if _, err := f.Wait(within(t)); !errors.Is(err, engine.ErrClosed) { // nobody asked before its node was gone
		t.Errorf("error is %v, want %v", err, engine.ErrClosed)
	}
}
