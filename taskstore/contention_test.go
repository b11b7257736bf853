package taskstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/item"
	"taskledger/task"
	"taskledger/taskstore"
)

// full refuses what adds more than it removes, as a store does that is almost full.
func full(_ context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
	if u.Client == 1 && len(u.Adds) > len(u.Deletes) {
		return nil, &task.OverloadError{Cause: "the store is 80 % full", RetryAfter: time.Second}
	}
	return ask()
}

func TestStore_AnUpdateThatIsNotAdmittedHoldsUpNoDeletes(t *testing.T) {
	bubble(t, func(b *bench) {
		ids := b.add("g", make([]string, 200)...)
		b.update = full
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
		added := make(chan error)
		go func() {
			_, err := b.s.Update(ctx, item.Update{Adds: []item.Add{{Group: "g"}}})
			added <- err
		}()
		synctest.Wait()
		for i, id := range ids {
			if _, err := b.s.Update(ctx, item.Update{Deletes: []int64{id}}); err != nil {
				t.Fatalf("after %d deletes: %v", i, err)
			}
		}
		cancel()
		if err := <-added; !errors.Is(err, context.Canceled) || errors.Is(err, task.ErrUnknown) {
			t.Errorf("the add: %v, want that it was cancelled", err)
		}
	})
}

func TestWorker_OneHandlerWhoseUpdateIsNotAdmittedDoesNotStopTheOthers(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", append([]string{"grow"}, make([]string, 400)...)...)
		b.update = full
		var n atomic.Int64
		stop := b.work(taskstore.WorkerOptions{Slots: 4}, func(_ context.Context, it *item.Item) (item.Update, error) {
			if string(it.Data) == "grow" {
				return item.Update{Adds: []item.Add{{Group: "g"}, {Group: "g"}}}, nil
			}
			n.Add(1)
			return item.Update{}, nil
		})
		time.Sleep(25 * time.Second)
		if n.Load() != 400 {
			t.Errorf("%d of 400 items were handled", n.Load())
		}
		stop()
	})
}

func TestWorker_OfAnEmptyGroupHoldsUpNoneOfAFullOne(t *testing.T) {
	for _, slots := range []int{8, 24, 32, 64} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.claim = func(_ context.Context, _ *item.Claim, ask func() (*item.Item, error)) (*item.Item, error) {
					time.Sleep(time.Millisecond)
					return ask()
				}
				work := func(group string, slots int, handle taskstore.Handler) *taskstore.Worker {
					w, err := taskstore.NewWorker(b.s, group, handle, taskstore.WorkerOptions{Slots: slots})
					if err != nil {
						t.Fatal(err)
					}
					return w
				}
				var n atomic.Int64
				handle := func(context.Context, *item.Item) (item.Update, error) { n.Add(1); return item.Update{}, nil }
				ctx, cancel := context.WithCancel(b.t.Context())
				ended := make(chan error, slots+1)
				for range slots { // one worker would leave one claim waiting, whatever its slots
					go func() { ended <- work("empty", 1, handle).Run(ctx) }()
				}
				time.Sleep(time.Second)
				b.add("g", make([]string, 200)...)
				go func() { ended <- work("g", 1, handle).Run(ctx) }()
				time.Sleep(2 * time.Second)
				if n.Load() != 200 {
					t.Errorf("%d of 200 items were handled in 2 s", n.Load())
				}
				// Those that have no place to wait look every second.
				b.add("empty", make([]string, slots)...)
				time.Sleep(2 * time.Second)
				if n.Load() != int64(200+slots) {
					t.Errorf("%d of %d items of the group that was empty were handled in 2 s", n.Load()-200, slots)
				}
				cancel()
				for range slots + 1 {
					if err := <-ended; err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

func TestStore_AClaimWithoutAPlaceToWaitStillWaitsForAsLongAsItIsTold(t *testing.T) {
	bubble(t, func(b *bench) {
		began, took := time.Now(), make(chan time.Duration)
		for range 100 {
			go func() {
				it, err := b.s.Claim(b.t.Context(), item.Claim{Group: "g", Wait: 2500 * time.Millisecond})
				if it != nil || err != nil {
					t.Errorf("claimed %v, %v", it, err)
				}
				took <- time.Since(began)
			}()
		}
		for range 100 {
			if d := <-took; d < 2500*time.Millisecond || d > 3*time.Second {
				t.Errorf("a claim has waited for %s", d)
			}
		}
	})
}

func TestWorker_AWrongChangeOfItsOwnItemIsRetriedAfterRetryAfter(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "data")
		var n atomic.Int64
		stop := b.work(taskstore.WorkerOptions{Duration: 10 * time.Minute, RetryAfter: time.Second}, func(_ context.Context, it *item.Item) (item.Update, error) {
			if n.Add(1) == 1 {
				return item.Update{Changes: []item.Change{{ID: it.ID, Group: "another"}}}, nil
			}
			return item.Update{}, nil
		})
		time.Sleep(3 * time.Second)
		if n.Load() != 2 {
			t.Errorf("handled %d times within 3 s, want 2", n.Load())
		}
		stop()
	})
}

func TestWorker_PausesWhileClaimsThatWaitComeBackEmptyAtOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		var n atomic.Int64
		b.claim = func(context.Context, *item.Claim, func() (*item.Item, error)) (*item.Item, error) {
			n.Add(1)
			time.Sleep(time.Millisecond)
			return nil, nil // a draining node answers so
		}
		stop := b.work(taskstore.WorkerOptions{}, func(context.Context, *item.Item) (item.Update, error) { return item.Update{}, nil })
		time.Sleep(10 * time.Second)
		if n.Load() > 20 {
			t.Errorf("%d claims in 10 s", n.Load())
		}
		stop()
	})
}

func TestWorker_RenewsAtOnceAClaimWhoseAnswerWasLostForLong(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "data")
		lost := false
		b.claim = func(_ context.Context, c *item.Claim, ask func() (*item.Item, error)) (*item.Item, error) {
			if c.Client != 1 || lost {
				return ask()
			}
			lost = true
			_, _ = ask()
			time.Sleep(8 * time.Second)
			return nil, errLost
		}
		stop := b.work(taskstore.WorkerOptions{Duration: 10 * time.Second}, func(ctx context.Context, _ *item.Item) (item.Update, error) {
			select {
			case <-time.After(20 * time.Second):
			case <-ctx.Done():
				t.Errorf("the context of the handler ended: %v", context.Cause(ctx))
			}
			return item.Update{}, nil
		})
		for range 25 {
			time.Sleep(time.Second)
			if it, err := b.other.TryClaim(b.t.Context(), item.Claim{Group: "g"}); it != nil || err != nil {
				t.Fatalf("another claimed %v, %v while the handler ran", it, err)
			}
		}
		time.Sleep(5 * time.Second)
		if left := b.left("g"); len(left) != 0 {
			t.Errorf("%d items are left", len(left))
		}
		stop()
	})
}

func TestStore_AnUpdateOfUnknownOutcomeIsNotRepeatedOnceItsKeyMayBeForgotten(t *testing.T) {
	bubble(t, func(b *bench) {
		b.update = func(context.Context, *item.Update, func() ([]item.Item, error)) ([]item.Item, error) {
			return nil, errLost
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Hour)
		defer cancel()
		_, err := b.s.Update(ctx, item.Update{Adds: []item.Add{{Group: "g"}}})
		if took := time.Since(began); !errors.Is(err, task.ErrUnknown) || took < 49*time.Minute || took > 51*time.Minute {
			t.Errorf("%v after %s, want an unknown outcome after 50m", err, took)
		}
	})
}

// A store that has forgotten keys of the client cannot know by itself that this one is not among them.
func TestStore_ARepeatedUpdateTellsThatItIsWithinThe64ThatTheStoreRemembers(t *testing.T) {
	bubble(t, func(b *bench) {
		var mu sync.Mutex
		tries := map[string]int{}
		b.update = func(_ context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
			mu.Lock()
			n := tries[u.Key]
			tries[u.Key]++
			mu.Unlock()
			if again := n > 0; again != (u.Age > 0) || again != (u.Within == 64) {
				t.Errorf("try %d has age %s and is within %d", n, u.Age, u.Within)
			}
			if n < 2 {
				time.Sleep(10 * time.Millisecond)
				return nil, errLost
			}
			return ask()
		}
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for range 4 {
					if _, err := b.s.Update(b.t.Context(), item.Update{Adds: []item.Add{{Group: "g"}}}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		b.update = func(_ context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
			if u.Within != 0 || u.Age < time.Minute {
				t.Errorf("asked before this window was there: age %s, within %d", u.Age, u.Within)
			}
			return ask()
		}
		if _, err := b.s.Update(b.t.Context(), item.Update{Key: "k", Age: time.Minute, Adds: []item.Add{{Group: "g"}}}); err != nil {
			t.Error(err)
		}
	})
}

func TestWorker_DrawsTheKeyOfItsLastUpdateItself(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "a", "b")
		stop := b.work(taskstore.WorkerOptions{}, func(context.Context, *item.Item) (item.Update, error) { return item.Update{Key: "the same"}, nil })
		time.Sleep(time.Second)
		if left := b.left("g"); len(left) != 0 {
			t.Errorf("%d items are left", len(left))
		}
		stop()
	})
}

func TestWorker_RepeatsAlsoWhereItsStoreAsksOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		once, err := taskstore.Open(b.spied, b.s.Name(), taskstore.Options{Client: 1, Once: true})
		if err != nil {
			t.Fatal(err)
		}
		b.s = once
		b.add("g", "data")
		lost := false
		b.claim = func(_ context.Context, _ *item.Claim, ask func() (*item.Item, error)) (*item.Item, error) {
			it, err := ask()
			if !lost {
				lost = true
				return nil, errLost
			}
			return it, err
		}
		stop := b.work(taskstore.WorkerOptions{}, func(context.Context, *item.Item) (item.Update, error) { return item.Update{}, nil })
		time.Sleep(time.Second)
		if left := b.left("g"); len(left) != 0 {
			t.Errorf("%d items are left", len(left))
		}
		stop()
	})
}
