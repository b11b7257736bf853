package traffic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/integration/robustness/history"
	"taskledger/item"
	"taskledger/task"
	"taskledger/taskstore"
)

// failed is the suffix of the group of items that were given up.
const failed = "/err"

// employer has items handled by workers, one after another, that give up items which they have claimed too often.
type employer struct {
	k    *storeClient
	seed uint64 // of what its workers draw
	life uint64 // number of the latest of them
}

// employ adds items and has a worker for a while, which then stops in order, or dies.
func (e *employer) employ() {
	k := e.k
	k.update(&item.Update{Adds: []item.Add{{Group: groups[0], Data: k.data()}, {Group: groups[0], Data: k.data()}}})
	e.life++
	w := &worker{
		s:      k.all,
		id:     k.id,
		life:   e.life,
		most:   1 + k.random.IntN(3),
		random: rand.New(rand.NewPCG(e.seed, e.life)),
	}
	ctx, stop := context.WithCancel(k.all.Waits)
	defer stop()
	var ends sync.WaitGroup
	lasts, dies := k.between(500*time.Millisecond, 4*time.Second), k.chance(0.5)
	ends.Go(func() {
		k.all.Rest(lasts)
		w.dead.Store(dies)
		stop()
	})
	if err := w.run(ctx, k.store, item.MinDuration+k.between(200*time.Millisecond, time.Second)); err != nil && !errors.Is(err, task.ErrClosed) {
		k.all.Damage("a worker of store %s ends by itself: %v", k.store, err)
	}
	ends.Wait()
}

// worker is the backend and the handler of one taskstore.Worker. It implements taskstore.Backend.
type worker struct {
	taskstore.Backend // none: a worker only updates and claims
	s                 *StoreClients
	id                int64
	life              uint64
	most              int         // claims of an item
	dead              atomic.Bool // it asks nothing any more

	mu     sync.Mutex
	random *rand.Rand
	made   int // items
}

func (w *worker) run(ctx context.Context, store string, claim time.Duration) error {
	s, err := taskstore.Open(w, store, taskstore.Options{Client: w.id})
	if err != nil {
		return err
	}
	of, err := taskstore.NewWorker(s, groups[0], w.handle, taskstore.WorkerOptions{Duration: claim, RetryAfter: w.between(time.Millisecond, claim),
		MaxClaims: w.most, Failures: groups[0] + failed, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return of.Run(ctx)
}

func (w *worker) chance(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.Float64() < p
}

func (w *worker) between(least, most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return least + time.Duration(w.random.Int64N(int64(most-least)+1))
}

// handle fails more often than not.
func (w *worker) handle(_ context.Context, it *item.Item) (u item.Update, err error) {
	if it.Claims < 1 || it.Claims > int64(w.most) {
		w.s.Damage("a worker that gives up after %d claims handles item %d, which was claimed %d times", w.most, it.ID, it.Claims)
	}
	w.s.Rest(w.between(0, time.Second))
	switch {
	case w.chance(0.6):
		return u, errors.New("as planned")
	case w.chance(0.2):
		panic("as planned")
	case w.chance(0.3):
		w.made++
		u.Adds = []item.Add{{Group: groups[0], Data: fmt.Appendf(nil, "%d of worker %d of %d", w.made, w.life, w.id)}}
	}
	return u, nil
}

// Update implements taskstore.Backend.
func (w *worker) Update(ctx context.Context, store string, u *item.Update) ([]item.Item, error) {
	asked := *u // the worker goes on with its own
	c, err := w.call(ctx, history.ItemCall{Store: store, Update: &asked})
	return c.Items, err
}

// Claim implements taskstore.Backend.
func (w *worker) Claim(ctx context.Context, store string, q *item.Claim) (*item.Item, error) {
	asked := *q
	c, err := w.call(ctx, history.ItemCall{Store: store, Claim: &asked})
	if err != nil || len(c.Items) == 0 {
		return nil, err
	}
	return &c.Items[0], nil
}

// call makes a call of whoever is drawn, unless the worker has died.
func (w *worker) call(ctx context.Context, c history.ItemCall) (history.ItemCall, error) {
	if w.dead.Load() {
		return c, task.ErrClosed
	}
	at, killed := w.s.Client()
	of, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(killed, cancel)()
	c.MaxClaims = int64(w.most)
	err := w.s.call(of, at, killed, &c)
	switch {
	case w.dead.Load():
		return c, task.ErrClosed
	case err != nil && killed.Err() != nil && ctx.Err() == nil:
		return c, fmt.Errorf("%w: the process was killed", task.ErrUnknown)
	}
	return c, err
}
