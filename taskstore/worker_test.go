package taskstore

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/item"
)

// others are the methods that no worker needs.
type others = Items

// one is a store of one item, which a worker claims once. before is called for each update, and may fail it, before or after it is applied.
type one struct {
	others  // are not asked
	mu      sync.Mutex
	claimed bool
	id      int64
	updates []item.Update
	before  func(ctx context.Context, n int) error
	after   func(ctx context.Context, n int) error
	keys    map[string][]item.Item
}

// ClaimItem implements Items.
func (o *one) ClaimItem(ctx context.Context, _ string, c *item.Claim) (*item.Item, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.claimed {
		o.mu.Unlock()
		<-ctx.Done()
		o.mu.Lock()
		return nil, ctx.Err()
	}
	o.claimed, o.id = true, 1
	return &item.Item{ID: 1, Group: c.Group, Owner: c.Client, Data: []byte("data")}, nil
}

// UpdateItems implements Items.
func (o *one) UpdateItems(ctx context.Context, _ string, u *item.Update) ([]item.Item, error) {
	o.mu.Lock()
	n := len(o.updates)
	o.updates = append(o.updates, *u)
	o.mu.Unlock()
	if o.before != nil {
		if err := o.before(ctx, n); err != nil {
			return nil, err
		}
	}
	o.mu.Lock()
	made, repeated := o.keys[u.Key]
	if !repeated {
		for _, c := range u.Changes {
			if c.ID != o.id {
				o.mu.Unlock()
				return nil, &item.ConflictError{Problems: []item.Problem{{Field: "updates", ID: c.ID, Text: item.NotThere}}}
			}
			o.id++
			made = append(made, item.Item{ID: o.id})
		}
		for _, id := range u.Deletes {
			if id != o.id {
				o.mu.Unlock()
				return nil, &item.ConflictError{Problems: []item.Problem{{Field: "deletes", ID: id, Text: item.NotThere}}}
			}
			o.id = 0
		}
		if o.keys == nil {
			o.keys = map[string][]item.Item{}
		}
		o.keys[u.Key] = made
	}
	o.mu.Unlock()
	if o.after != nil {
		if err := o.after(ctx, n); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// runWorker runs a worker with claims of 10 s until its handler has returned, or ctx ends.
func runWorker(t *testing.T, o Items, ctx context.Context, h Handler) {
	t.Helper()
	s, err := Open(o, "s", Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := NewWorker(WorkerConfig{Store: s, Group: "g", Duration: 10 * time.Second, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Handler: func(ctx context.Context, it *Item) (*Update, error) {
		defer time.AfterFunc(time.Hour, cancel)
		return h(ctx, it)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestWorker_RenewsAtHalfTimeAndNeverSendsData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, began := &one{}, time.Now()
		o.before = func(_ context.Context, n int) error {
			if want := time.Duration(n+1) * 5 * time.Second; n < 4 && time.Since(began) != want {
				t.Errorf("renewal %d after %s, want %s", n, time.Since(began), want)
			}
			return nil
		}
		runWorker(t, o, t.Context(), func(context.Context, *Item) (*Update, error) {
			time.Sleep(22 * time.Second)
			return nil, nil
		})
		if len(o.updates) != 5 || o.id != 0 {
			t.Fatalf("%d updates, the item is %d now", len(o.updates), o.id)
		}
		for _, u := range o.updates[:4] {
			if c := u.Changes[0]; len(u.Changes) != 1 || !c.Keep || c.Data != nil || c.At != -10_000 {
				t.Errorf("renewal %+v", u)
			}
		}
		if last := o.updates[4]; len(last.Deletes) != 1 || last.Deletes[0] != 5 {
			t.Errorf("end %+v", last)
		}
	})
}

// The handler ends, and then the worker is stopped, while a renewal is on its way: its answer is awaited, and the item deleted by its new id.
func TestWorker_RenewalUnderWayIsNeverCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		o := &one{}
		o.after = func(ctx context.Context, n int) error {
			if n == 0 {
				time.Sleep(4 * time.Second)
			}
			if ctx.Err() != nil {
				t.Errorf("update %d was cancelled", n)
			}
			return ctx.Err()
		}
		time.AfterFunc(7*time.Second, stop)
		runWorker(t, o, ctx, func(context.Context, *Item) (*Update, error) {
			time.Sleep(6 * time.Second)
			return nil, nil
		})
		if o.id != 0 || len(o.updates) != 2 {
			t.Errorf("the item is %d after %+v", o.id, o.updates)
		}
	})
}

func TestWorker_RenewalWhoseAnswerIsLostIsRepeatedByItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &one{}
		o.after = func(_ context.Context, n int) error {
			if n == 0 || n == 2 { // a renewal, and the end
				return ErrUnknown
			}
			return nil
		}
		runWorker(t, o, t.Context(), func(context.Context, *Item) (*Update, error) {
			time.Sleep(6 * time.Second)
			return nil, nil
		})
		if o.id != 0 || len(o.updates) != 4 || o.updates[0].Key == "" || o.updates[0].Key != o.updates[1].Key || o.updates[1].Key == o.updates[2].Key {
			t.Errorf("the item is %d after %+v", o.id, o.updates)
		}
	})
}

// A store that answers nobody keeps a worker that is stopped no longer than its patience.
func TestWorker_StopsAlsoWhenNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		o, began := &one{before: func(ctx context.Context, _ int) error { <-ctx.Done(); return ErrUnknown }}, time.Now()
		runWorker(t, o, ctx, func(ctx context.Context, _ *Item) (*Update, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		if took := time.Since(began); took > 7*time.Second+stopPatience {
			t.Errorf("it went on for %s", took)
		}
	})
}

func TestWorker_HandlerOfALostItemHearsWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &one{}
		time.AfterFunc(time.Second, func() {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.id = 77
		})
		runWorker(t, o, t.Context(), func(ctx context.Context, _ *Item) (*Update, error) {
			<-ctx.Done()
			if _, is := errors.AsType[*ConflictError](context.Cause(ctx)); !is || !errors.Is(context.Cause(ctx), ErrLost) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return nil, nil
		})
		if len(o.updates) != 1 {
			t.Errorf("updates %+v", o.updates)
		}
	})
}

// late claims its item when the caller has gone already.
type late struct {
	one
	key string
}

// ClaimItem implements Items.
func (l *late) ClaimItem(ctx context.Context, store string, c *item.Claim) (*item.Item, error) {
	if l.key == "" {
		l.key = c.Key
		<-ctx.Done()
		return nil, errors.Join(ErrUnknown, ctx.Err())
	}
	if c.Key != l.key || c.Wait != 0 {
		return nil, errors.New("this is another claim")
	}
	return l.one.ClaimItem(ctx, store, c)
}

func TestWorker_GivesBackWhatItClaimedWhileItStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l := &late{}
		runWorker(t, l, ctx, func(context.Context, *Item) (*Update, error) {
			t.Error("it works after its end")
			return nil, nil
		})
		if len(l.updates) != 1 || len(l.updates[0].Changes) != 1 || !reflect.DeepEqual(l.updates[0].Changes[0], Change{ID: 1, Keep: true}) {
			t.Errorf("updates %+v", l.updates)
		}
	})
}

func TestNewWorker_RefusesWhatCannotBe(t *testing.T) {
	s, err := Open(&one{}, "s", Options{Client: 5})
	if err != nil || s.Client() != 5 || s.Name() != "s" {
		t.Fatal(s, err)
	}
	h := func(context.Context, *Item) (*Update, error) { return nil, nil }
	for _, cfg := range []WorkerConfig{{}, {Store: s, Group: "g"}, {Store: s, Handler: h}, {Group: "g", Handler: h}, {Store: s, Group: "g", Handler: h, Duration: -1},
		{Store: s, Group: "g", Handler: h, Duration: 25 * time.Hour}, {Store: s, Group: "g", Handler: h, RetryAfter: -1}} {
		if _, err := NewWorker(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
	for _, o := range []Options{{Client: -1}, {Client: item.MaxNumber + 1}} {
		if _, err := Open(&one{}, "s", o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if _, err := Open(&one{}, "a/b", Options{}); err == nil {
		t.Error("a name is taken that cannot be")
	}
}
