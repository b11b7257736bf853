package taskstoretest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/taskstore"
)

// work runs a worker of group g on a store until the function that it returns is called, which waits for its end.
func (b *bench) work(s *taskstore.Store, cfg taskstore.WorkerConfig) (stop func()) {
	b.Helper()
	cfg.Store, cfg.Group = s, "g"
	cfg.Log = slog.New(slog.NewTextHandler(b.Output(), nil))
	w, err := taskstore.NewWorker(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("worker: %v", err)
		}
	})
}

// await waits for what a handler tells.
func await[T any](b *bench, from <-chan T) (v T) {
	b.Helper()
	select {
	case v = <-from:
	case <-b.ctx.Done():
		b.Fatal("nothing happened")
	}
	return v
}

// output is an item that a handler adds.
func output(it *taskstore.Item) *taskstore.Update {
	return &taskstore.Update{Adds: []taskstore.Add{{Group: "out", Data: it.Data}}}
}

var workers = []property{
	{"WorkersFinishEveryItemOnceByOneUpdate", func(b *bench) {
		const n = 60
		var done atomic.Int64
		all := make(chan struct{})
		var stops []func()
		for range 4 {
			stops = append(stops, b.work(b.open(b.T, b.name), taskstore.WorkerConfig{Handler: func(_ context.Context, it *taskstore.Item) (*taskstore.Update, error) {
				if done.Add(1) == n {
					close(all)
				}
				return output(it), nil
			}}))
		}
		for i := range n {
			b.add("g", fmt.Sprint(i))
		}
		await(b, all)
		for _, stop := range stops {
			stop()
		}
		seen := map[string]bool{}
		for _, it := range b.whole() {
			if it.Group != "out" || seen[string(it.Data)] {
				b.Errorf("left or twice: %+v", it)
			}
			seen[string(it.Data)] = true
		}
		if len(seen) != n || done.Load() != n {
			b.Errorf("%d results of %d, %d runs", len(seen), n, done.Load())
		}
	}},
	{"WorkerKeepsAnItemLongerThanItsClaim", func(b *bench) {
		b.add("g", "data")
		const claimed = time.Second
		began := make(chan taskstore.Item, 1)
		goOn, done := make(chan struct{}), make(chan struct{})
		stop := b.work(b.s, taskstore.WorkerConfig{Duration: claimed, Handler: func(ctx context.Context, it *taskstore.Item) (*taskstore.Update, error) {
			began <- *it
			select {
			case <-goOn:
			case <-ctx.Done():
				b.Errorf("lost: %v", context.Cause(ctx))
			}
			defer close(done)
			return output(it), nil
		}})
		it := await(b, began)
		if got := b.claim(b.other, "g", time.Minute, 3*claimed); got != nil { // others wait in vain for three times its claim
			b.Errorf("another one claimed %+v", got)
		}
		if held := b.list(taskstore.Page{Group: "g", Owned: true}); len(held) != 1 || held[0].ID < it.ID+4 || string(held[0].Data) != "data" {
			b.Errorf("held: %+v, want four renewals of %+v at least", held, it)
		}
		close(goOn)
		await(b, done)
		stop()
		if all := b.whole(); len(all) != 1 || all[0].Group != "out" {
			b.Errorf("left %+v", all)
		}
	}},
	{"WorkerCancelsItsHandlerWhenTheIDIsGone", func(b *bench) {
		b.add("g", "data")
		began, cause := make(chan taskstore.Item, 1), make(chan error, 1)
		defer b.work(b.s, taskstore.WorkerConfig{Duration: time.Second, Handler: func(ctx context.Context, it *taskstore.Item) (*taskstore.Update, error) {
			began <- *it
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return output(it), nil
		}})()
		it := await(b, began)
		b.update(taskstore.Update{Deletes: []int64{it.ID}})
		if err := await(b, cause); !errors.Is(err, taskstore.ErrLost) {
			b.Errorf("cause %v", err)
		}
		if all := b.whole(); len(all) != 0 {
			b.Errorf("what a late handler returned was applied: %+v", all)
		}
	}},
	{"FailedItemIsReleasedAfterRetryAfter", func(b *bench) {
		for _, how := range []string{"error", "panic", "refused", "invalid"} {
			b.failure(how, taskstore.WorkerConfig{RetryAfter: 300 * time.Millisecond, Duration: time.Hour}, 300*time.Millisecond)
		}
	}},
	{"FailedItemIsReleasedWhenItsClaimEnds", func(b *bench) {
		b.failure("panic", taskstore.WorkerConfig{Duration: 500 * time.Millisecond}, 400*time.Millisecond)
	}},
	{"StoppedWorkerReleasesItsItemAtOnce", func(b *bench) {
		b.add("g", "data")
		began := make(chan struct{})
		stop := b.work(b.s, taskstore.WorkerConfig{Duration: time.Hour, Handler: func(ctx context.Context, _ *taskstore.Item) (*taskstore.Update, error) {
			close(began)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		await(b, began)
		stop()
		if it := b.claim(b.other, "g", time.Minute, 0); it == nil || string(it.Data) != "data" {
			b.Errorf("claimed %+v", it)
		}
	}},
	{"HandlerMayChangeItsItemByTheIDItWasGiven", func(b *bench) {
		b.add("g", "a")
		turn := make(chan string, 4)
		defer b.work(b.s, taskstore.WorkerConfig{Duration: 400 * time.Millisecond, Handler: func(_ context.Context, it *taskstore.Item) (*taskstore.Update, error) {
			turn <- string(it.Data)
			if len(it.Data) < 3 {
				<-time.After(300 * time.Millisecond) // so that the id is another one by then
				return &taskstore.Update{Depends: []int64{it.ID}, Changes: []taskstore.Change{{ID: it.ID, Data: append(it.Data, 'a')}}}, nil
			}
			return nil, nil
		}})()
		for _, want := range []string{"a", "aa", "aaa"} {
			if got := await(b, turn); got != want {
				b.Errorf("handled %q, want %q", got, want)
			}
		}
	}},
}

// failure shows that an item whose handler fails is handled again, and after what time.
func (b *bench) failure(how string, cfg taskstore.WorkerConfig, after time.Duration) {
	b.Run(how, func(t *testing.T) {
		b := &bench{T: t, ctx: b.ctx, s: b.s, other: b.other, open: b.open, name: b.name}
		b.add("g", how)
		turns := make(chan time.Time, 2)
		again := false
		cfg.Handler = func(_ context.Context, it *taskstore.Item) (*taskstore.Update, error) {
			turns <- time.Now()
			if again {
				return nil, nil
			}
			again = true
			switch how {
			case "error":
				return output(it), errors.New("planned")
			case "refused":
				return &taskstore.Update{Depends: []int64{1 << 50}}, nil
			case "invalid":
				return &taskstore.Update{Deletes: []int64{-1}}, nil
			}
			panic("planned")
		}
		stop := b.work(b.s, cfg)
		first, second := await(b, turns), await(b, turns)
		if took := second.Sub(first); took < after-50*time.Millisecond || // the owner's clock is another one
			took > after+20*time.Second {
			b.Errorf("handled again after %s, want %s", took, after)
		}
		stop()
		if all := b.whole(); len(all) != 0 {
			b.Errorf("left %+v", all)
		}
	})
}
