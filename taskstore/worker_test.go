package taskstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/internal/testcluster"
	"taskledger/item"
	"taskledger/taskstore"
)

const soon = time.Minute

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openOn returns a store on a node of its own.
func openOn(t *testing.T) (*testcluster.Node, *taskstore.Store) {
	t.Helper()
	n := testcluster.New(t, testcluster.Options{TTL: time.Minute, Shards: 1}).StartNode("a", nil)
	s, err := taskstore.Open(n, "crawl", 1)
	ok(t, err)
	return n, s
}

// start runs a worker until it is stopped; stop may be called more than once.
func start(t *testing.T, n taskstore.Engine, w taskstore.Worker) (stop func()) {
	t.Helper()
	s, err := taskstore.Open(n, "crawl", 0)
	ok(t, err)
	w.Store, w.Group, w.Log = s, "pages", slog.New(slog.NewTextHandler(t.Output(), nil))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("worker: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func groupOf(t *testing.T, s *taskstore.Store, name string) (all []item.Item) {
	t.Helper()
	for i, err := range s.Linear().Group(within(t), name, item.Page{Owned: true}) {
		ok(t, err)
		all = append(all, i)
	}
	return all
}

func TestWorker_EveryTaskIsDoneOnceAndGoneTogetherWithWhatFollowsFromIt(t *testing.T) {
	n, s := openOn(t)
	const count = 100
	u := &item.Update{}
	for i := range count {
		u.Adds = append(u.Adds, item.Add{Group: "pages", Data: fmt.Append(nil, i)})
	}
	_, err := s.Update(within(t), u)
	ok(t, err)
	var mu sync.Mutex
	done := map[string]int{}
	handle := func(_ context.Context, of *item.Item) (*item.Update, error) {
		mu.Lock()
		defer mu.Unlock()
		done[string(of.Data)]++
		return &item.Update{Adds: []item.Add{{Group: "done", Data: of.Data}}}, nil
	}
	start(t, n, taskstore.Worker{Handle: handle, Slots: 4})
	start(t, n, taskstore.Worker{Handle: handle, Slots: 4})
	testcluster.Await(t, "all tasks are done", func() bool { return len(groupOf(t, s, "done")) == count })
	mu.Lock()
	defer mu.Unlock()
	for i := range count {
		if done[fmt.Sprint(i)] != 1 {
			t.Errorf("task %d was done %d times", i, done[fmt.Sprint(i)])
		}
	}
	if left := groupOf(t, s, "pages"); len(left) > 0 {
		t.Errorf("%d are left", len(left))
	}
}

func TestWorker_RenewsItsClaimWithoutTheDataWhileItWorks(t *testing.T) {
	n, s := openOn(t)
	_, err := s.Update(within(t), &item.Update{Adds: []item.Add{{Group: "pages", Data: []byte("data")}}})
	ok(t, err)
	var calls atomic.Int32
	working, end := make(chan struct{}), make(chan struct{})
	start(t, n, taskstore.Worker{Duration: 400 * time.Millisecond, Handle: func(context.Context, *item.Item) (*item.Update, error) {
		if calls.Add(1) == 1 {
			close(working)
			<-end
		}
		return nil, nil
	}})
	<-working
	first := groupOf(t, s, "pages")[0].ID
	testcluster.Await(t, "three renewals", func() bool { return groupOf(t, s, "pages")[0].ID >= first+3 })
	if left := groupOf(t, s, "pages"); string(left[0].Data) != "data" {
		t.Errorf("renewed, it is %+v", left[0])
	}
	if got, err := s.Claim(within(t), &item.Claim{Group: "pages", Duration: time.Second}); err != nil || got != nil {
		t.Errorf("another one gets %+v, %v", got, err)
	}
	close(end)
	testcluster.Await(t, "an empty group", func() bool { return len(groupOf(t, s, "pages")) == 0 })
	if n := calls.Load(); n != 1 {
		t.Errorf("it was worked on %d times", n)
	}
}

// The worker's own client is another one, so the store is asked by it: whoever deletes the task has its id.
func TestWorker_WhoLosesItsTaskIsToldAndItsWorkIsThrownAway(t *testing.T) {
	n, s := openOn(t)
	_, err := s.Update(within(t), &item.Update{Adds: []item.Add{{Group: "pages"}}})
	ok(t, err)
	as, err := taskstore.Open(n, "crawl", 77)
	ok(t, err)
	working, cause := make(chan struct{}), make(chan error, 1)
	w := taskstore.Worker{Store: as, Group: "pages", Duration: 300 * time.Millisecond,
		Handle: func(ctx context.Context, _ *item.Item) (*item.Update, error) {
			close(working)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return &item.Update{Adds: []item.Add{{Group: "done"}}}, nil
		}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	<-working
	for deleted := false; !deleted; { // between two renewals
		left := groupOf(t, s, "pages")
		_, err := as.Update(within(t), &item.Update{Deletes: []int64{left[0].ID}})
		deleted = err == nil
	}
	if err := <-cause; !errors.Is(err, taskstore.ErrLate) {
		t.Errorf("its context ends with %v", err)
	}
	stop()
	ok(t, <-ended)
	if done := groupOf(t, s, "done"); len(done) > 0 {
		t.Errorf("its work was recorded: %v", done)
	}
}

func TestWorker_AFailureReleasesItsTaskAfterTheTimeAndNeverDropsIt(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("no") },
		"panic": func() error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			n, s := openOn(t)
			_, err := s.Update(within(t), &item.Update{Adds: []item.Add{{Group: "pages", Data: []byte("data")}}})
			ok(t, err)
			var calls atomic.Int32
			start(t, n, taskstore.Worker{RetryAfter: 50 * time.Millisecond, Handle: func(_ context.Context, of *item.Item) (*item.Update, error) {
				if calls.Add(1) < 3 {
					return nil, fail()
				}
				return &item.Update{Adds: []item.Add{{Group: "done", Data: of.Data}}}, nil
			}})
			testcluster.Await(t, "the third attempt", func() bool { return len(groupOf(t, s, "done")) == 1 })
			if done := groupOf(t, s, "done"); string(done[0].Data) != "data" {
				t.Errorf("its data are %q", done[0].Data)
			}
		})
	}
}

func TestWorker_RefusesWhatItCannotWorkWith(t *testing.T) {
	s, err := taskstore.Open(nil, "crawl", 1)
	ok(t, err)
	handle := func(context.Context, *item.Item) (*item.Update, error) { return nil, nil }
	for name, w := range map[string]taskstore.Worker{
		"no store":     {Group: "g", Handle: handle},
		"no handler":   {Group: "g", Store: s},
		"no group":     {Store: s, Handle: handle},
		"too short":    {Group: "g", Store: s, Handle: handle, Duration: time.Millisecond},
		"too long":     {Group: "g", Store: s, Handle: handle, Duration: 25 * time.Hour},
		"no slots":     {Group: "g", Store: s, Handle: handle, Slots: -1},
		"retry before": {Group: "g", Store: s, Handle: handle, RetryAfter: -1},
	} {
		if err := w.Run(t.Context()); err == nil {
			t.Errorf("%s: it runs", name)
		}
	}
}

func TestOpen_RefusesWhatNamesNoStoreOrNoClient(t *testing.T) {
	for name, client := range map[string]int64{"": 1, "a b": 1, "a/b": 1, "crawl": -1, "big": 1<<53 + 1} {
		if _, err := taskstore.Open(nil, name, client); err == nil {
			t.Errorf("store %q of client %d is opened", name, client)
		}
	}
	a, err := taskstore.Open(nil, "crawl", 0)
	ok(t, err)
	b, err := taskstore.Open(nil, "crawl", 0)
	ok(t, err)
	if a.Client() == b.Client() || a.Client() < 1 || a.Client() > item.MaxNumber {
		t.Errorf("clients %d and %d are drawn", a.Client(), b.Client())
	}
}
