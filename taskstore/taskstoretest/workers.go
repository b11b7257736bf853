package taskstoretest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"taskledger/item"
	"taskledger/taskstore"
)

// workers are the tests of workers.
var workers = map[string]func(f *fixture){
	"Worker/HandlesEachItemOnce": func(f *fixture) {
		const items = 100
		var u item.Update
		for i := range items {
			u.Adds = append(u.Adds, item.Add{Group: "g", Data: fmt.Append(nil, i)})
		}
		var mu sync.Mutex
		handled := map[string]int{}
		h := func(_ context.Context, it *item.Item) (item.Update, error) {
			mu.Lock()
			defer mu.Unlock()
			handled[string(it.Data)]++
			return item.Update{Adds: []item.Add{{Group: "done", Data: it.Data}}}, nil
		}
		stop := f.work([]*taskstore.Store{f.s, f.other, f.open(3)}, taskstore.WorkerOptions{Slots: 3}, h)
		defer stop()
		f.update(f.s, u)
		f.eventually(func() bool { return len(f.owned("done")) == items })
		stop()
		mu.Lock()
		defer mu.Unlock()
		for i := range items {
			if n := handled[fmt.Sprint(i)]; n != 1 {
				f.Errorf("item %d was handled %d times", i, n)
			}
		}
		if left := f.owned("g"); len(left) != 0 {
			f.Errorf("%d items are left", len(left))
		}
	},

	"Worker/RenewsAsLongAsItsHandlerRunsAndNobodyElseClaimsMeanwhile": func(f *fixture) {
		it := f.add("g", "data")[0]
		began, end := make(chan struct{}), make(chan struct{})
		stop := f.work([]*taskstore.Store{f.s}, taskstore.WorkerOptions{Duration: 2 * time.Second}, func(ctx context.Context, _ *item.Item) (item.Update, error) {
			close(began)
			select {
			case <-end:
				return item.Update{}, nil
			case <-ctx.Done():
				return item.Update{}, context.Cause(ctx)
			}
		})
		defer stop()
		<-began
		it2, err := f.other.Claim(f.Context(), item.Claim{Group: "g", Wait: 5 * time.Second})
		if it2 != nil || err != nil {
			f.Errorf("another has claimed %+v, %v", it2, err)
		}
		if got := f.owned("g"); len(got) != 1 || got[0].ID < it.ID+3 || string(got[0].Data) != "data" || got[0].Owner != 1 {
			f.Errorf("the item is %+v, want it renewed more than once, with its data", got)
		}
		close(end)
		f.eventually(func() bool { return len(f.owned("g")) == 0 })
	},

	"Worker/EndsItsHandlerWhenTheItemIsGone": func(f *fixture) {
		f.add("g", "data")
		began, cause := make(chan struct{}), make(chan error, 1)
		stop := f.work([]*taskstore.Store{f.s}, taskstore.WorkerOptions{Duration: time.Second}, func(ctx context.Context, _ *item.Item) (item.Update, error) {
			close(began)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return item.Update{Adds: []item.Add{{Group: "done"}}}, nil
		})
		defer stop()
		<-began
		for deleted := false; !deleted; { // it may be renewed meanwhile
			for _, it := range f.owned("g") {
				_, err := f.s.Update(f.Context(), item.Update{Deletes: []int64{it.ID}})
				deleted = err == nil
			}
		}
		if err := <-cause; !errors.Is(err, taskstore.ErrLate) {
			f.Errorf("ended by %v", err)
		}
		stop()
		if got := f.owned("done"); len(got) != 0 {
			f.Errorf("a late handler has made %+v", got)
		}
	},

	"Worker/AFailedItemIsHandledAgainAfterAWhile": func(f *fixture) {
		f.add("g", "data")
		var mu sync.Mutex
		var at []time.Time
		stop := f.work([]*taskstore.Store{f.s}, taskstore.WorkerOptions{RetryAfter: 200 * time.Millisecond}, func(context.Context, *item.Item) (item.Update, error) {
			mu.Lock()
			defer mu.Unlock()
			switch at = append(at, time.Now()); len(at) {
			case 1:
				return item.Update{}, errors.New("no")
			case 2:
				panic("no")
			}
			return item.Update{}, nil
		})
		defer stop()
		f.eventually(func() bool { return len(f.owned("g")) == 0 })
		mu.Lock()
		defer mu.Unlock()
		if len(at) != 3 || at[1].Sub(at[0]) < 150*time.Millisecond || at[2].Sub(at[1]) < 150*time.Millisecond {
			f.Errorf("handled at %v", at)
		}
	},
}

// work runs a worker for each store until the returned function is called.
func (f *fixture) work(stores []*taskstore.Store, o taskstore.WorkerOptions, h taskstore.Handler) (stop func()) {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	var wg sync.WaitGroup
	for _, s := range stores {
		w, err := taskstore.NewWorker(s, "g", h, o)
		if err != nil {
			f.Fatal(err)
		}
		wg.Go(func() {
			if err := w.Run(ctx); err != nil {
				f.Errorf("run: %v", err)
			}
		})
	}
	return sync.OnceFunc(func() { cancel(); wg.Wait() })
}

// eventually waits until something is so.
func (f *fixture) eventually(so func() bool) {
	f.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			f.Fatal("it was not so within 20 s")
		}
	}
}
