package taskstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
	"taskledger/taskstore"
	"taskledger/taskstore/taskstoretest/model"
)

// spied is a backend that shows each request, and may answer in its place.
type spied struct {
	taskstore.Backend
	mu      sync.Mutex
	updates []item.Update
	claims  []item.Claim
	update  func(ctx context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error)
	claim   func(ctx context.Context, c *item.Claim, ask func() (*item.Item, error)) (*item.Item, error)
}

func (s *spied) Update(ctx context.Context, name string, u *item.Update) ([]item.Item, error) {
	s.mu.Lock()
	s.updates = append(s.updates, *u)
	s.mu.Unlock()
	ask := func() ([]item.Item, error) { return s.Backend.Update(ctx, name, u) }
	if s.update != nil {
		return s.update(ctx, u, ask)
	}
	return ask()
}

func (s *spied) Claim(ctx context.Context, name string, c *item.Claim) (*item.Item, error) {
	s.mu.Lock()
	s.claims = append(s.claims, *c)
	s.mu.Unlock()
	ask := func() (*item.Item, error) { return s.Backend.Claim(ctx, name, c) }
	if s.claim != nil {
		return s.claim(ctx, c, ask)
	}
	return ask()
}

func (s *spied) seen() []item.Update {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.updates)
}

// bench is a store in a bubble.
type bench struct {
	t *testing.T
	*spied
	s, other *taskstore.Store
}

func bubble(t *testing.T, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, spied: &spied{Backend: model.New(testkit.Rand(t))}}
		b.s, b.other = b.open(1), b.open(2)
		f(b)
	})
}

func (b *bench) open(client int64) *taskstore.Store {
	b.t.Helper()
	s, err := taskstore.Open(b.spied, b.t.Name(), taskstore.Options{Client: client})
	if err != nil {
		// names of tests are longer than those of stores
		if s, err = taskstore.Open(b.spied, fmt.Sprintf("%p", b.spied), taskstore.Options{Client: client}); err != nil {
			b.t.Fatal(err)
		}
	}
	return s
}

func (b *bench) add(group string, data ...string) (ids []int64) {
	b.t.Helper()
	var u item.Update
	for _, d := range data {
		u.Adds = append(u.Adds, item.Add{Group: group, Data: []byte(d)})
	}
	made, err := b.other.Update(b.t.Context(), u)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, it := range made {
		ids = append(ids, it.ID)
	}
	return ids
}

// left is the data of the items of a group.
func (b *bench) left(group string) (data []string) {
	b.t.Helper()
	for it, err := range b.s.Group(b.t.Context(), group, taskstore.List{Owned: true}) {
		if err != nil {
			b.t.Fatal(err)
		}
		data = append(data, string(it.Data))
	}
	return data
}

// work runs a worker until the returned function is called.
func (b *bench) work(o taskstore.WorkerOptions, h taskstore.Handler) (stop func()) {
	b.t.Helper()
	w, err := taskstore.NewWorker(b.s, "g", h, o)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		b.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("run: %v", err)
		}
	}
}

func TestWorker_HandlesEachItemOnceAndDoesWhatItsHandlerWantsWithItsRemoval(t *testing.T) {
	bubble(t, func(b *bench) {
		var want []string
		for i := range 100 {
			want = append(want, fmt.Sprintf("%02d", i))
		}
		b.add("g", want...)
		stop := b.work(taskstore.WorkerOptions{Slots: 4}, func(ctx context.Context, it *item.Item) (item.Update, error) {
			time.Sleep(time.Second)
			return item.Update{Adds: []item.Add{{Group: "done", Data: it.Data}}}, nil
		})
		time.Sleep(25*time.Second + time.Millisecond)
		synctest.Wait()
		stop()
		got := b.left("done")
		slices.Sort(got)
		if !slices.Equal(got, want) || len(b.left("g")) != 0 {
			b.t.Errorf("done: %q; left: %q", got, b.left("g"))
		}
	})
}

func TestWorker_RenewsAtHalfTimeWithoutItsDataAndNobodyElseClaimsMeanwhile(t *testing.T) {
	bubble(t, func(b *bench) {
		first := b.add("g", "data")[0]
		stop := b.work(taskstore.WorkerOptions{Duration: 6 * time.Second}, func(ctx context.Context, it *item.Item) (item.Update, error) {
			time.Sleep(10 * time.Second)
			return item.Update{}, ctx.Err()
		})
		var until time.Time
		for range 95 {
			time.Sleep(100 * time.Millisecond)
			if it, err := b.other.TryClaim(b.t.Context(), item.Claim{Group: "g"}); it != nil || err != nil {
				b.t.Fatalf("another has claimed %v, %v", it, err)
			}
			for it, err := range b.s.Group(b.t.Context(), "g", taskstore.List{Owned: true}) {
				if err != nil || it.ID <= first {
					b.t.Fatalf("item %d, %v", it.ID, err)
				}
				until = it.At.Time()
			}
		}
		if left := time.Until(until); left < 3*time.Second {
			b.t.Errorf("the claim ends in %s, want more than half", left)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		stop()
		var renewals int
		for _, u := range b.seen() {
			for _, c := range u.Changes {
				if renewals++; !c.Keep || c.Data != nil || c.At != -6_000 {
					b.t.Errorf("renewed by %+v", c)
				}
			}
		}
		if renewals != 3 || len(b.left("g")) != 0 {
			b.t.Errorf("%d renewals, want 3; left: %q", renewals, b.left("g"))
		}
	})
}

func TestWorker_EndsItsHandlersContextWhenTheItemIsGoneAndDropsWhatTheHandlerWants(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "data")
		cause := make(chan error, 1)
		stop := b.work(taskstore.WorkerOptions{Duration: 6 * time.Second}, func(ctx context.Context, it *item.Item) (item.Update, error) {
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return item.Update{Adds: []item.Add{{Group: "done"}}}, nil
		})
		synctest.Wait()
		// The same client removes it, as an operator would who acts for it.
		for it := range b.s.Group(b.t.Context(), "g", taskstore.List{Owned: true}) {
			if _, err := b.s.Update(b.t.Context(), item.Update{Deletes: []int64{it.ID}}); err != nil {
				b.t.Fatal(err)
			}
		}
		began := time.Now()
		if err := <-cause; !errors.Is(err, taskstore.ErrLate) || time.Since(began) > 3*time.Second {
			b.t.Errorf("ended after %s by %v", time.Since(began), err)
		}
		synctest.Wait()
		stop()
		if got := b.left("done"); len(got) != 0 {
			b.t.Errorf("a late handler has made %q", got)
		}
	})
}

func TestWorker_ReleasesTheItemAfterAnErrorAPanicAndAnEndOfItsGoroutineAndNeverDropsIt(t *testing.T) {
	for name, c := range map[string]struct {
		fail  func() (item.Update, error)
		after time.Duration // RetryAfter
		comes time.Duration // until it is handled again
	}{
		"error":               {func() (item.Update, error) { return item.Update{}, errors.New("no") }, 2 * time.Second, 3 * time.Second},
		"panic":               {func() (item.Update, error) { panic("no") }, 2 * time.Second, 3 * time.Second},
		"end":                 {func() (item.Update, error) { runtime.Goexit(); return item.Update{}, nil }, 2 * time.Second, 3 * time.Second},
		"refused":             {func() (item.Update, error) { return item.Update{Depends: []int64{99}}, nil }, 2 * time.Second, 3 * time.Second},
		"bad":                 {func() (item.Update, error) { return item.Update{Deletes: []int64{-1}}, nil }, 2 * time.Second, 3 * time.Second},
		"rest of the claim":   {func() (item.Update, error) { return item.Update{}, errors.New("no") }, 0, 10 * time.Second},
		"longer than a claim": {func() (item.Update, error) { return item.Update{}, errors.New("no") }, time.Minute, 61 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.add("g", "data")
				var at []time.Time
				stop := b.work(taskstore.WorkerOptions{Duration: 10 * time.Second, RetryAfter: c.after}, func(ctx context.Context, it *item.Item) (item.Update, error) {
					if string(it.Data) != "data" {
						b.t.Errorf("handles %q", it.Data)
					}
					at = append(at, time.Now())
					if time.Sleep(time.Second); len(at) < 3 {
						return c.fail()
					}
					return item.Update{}, nil
				})
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				stop()
				if len(at) != 3 || at[1].Sub(at[0]) != c.comes || at[2].Sub(at[1]) != c.comes || len(b.left("g")) != 0 {
					b.t.Errorf("handled at %v, want each %s; left: %q", at, c.comes, b.left("g"))
				}
			})
		})
	}
}

func TestWorker_ReleasesTheItemAtOnceWhenItsHandlerFailsBecauseTheWorkerStops(t *testing.T) {
	for name, after := range map[string]time.Duration{"rest of the claim": 0, "retry after": time.Minute} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.add("g", "data")
				stop := b.work(taskstore.WorkerOptions{RetryAfter: after, Duration: 6 * time.Second}, func(ctx context.Context, it *item.Item) (item.Update, error) {
					<-ctx.Done()
					return item.Update{}, ctx.Err()
				})
				time.Sleep(4 * time.Second) // it has been renewed once
				stop()
				b.wantAvailable("data")
			})
		})
	}
}

// wantAvailable asserts that another client can claim the only item now.
func (b *bench) wantAvailable(data string) {
	b.t.Helper()
	if it, err := b.other.TryClaim(b.t.Context(), item.Claim{Group: "g"}); err != nil || it == nil || string(it.Data) != data {
		b.t.Errorf("another client claims %v, %v", it, err)
	}
}

func TestWorker_ReleasesWhatAClaimGotThatWasUnderWayWhenItStopped(t *testing.T) {
	lost := fmt.Errorf("%w: the answer is lost", task.ErrUnknown)
	for name, first := range map[string]func(ask func() (*item.Item, error)) (*item.Item, error){
		"the answer was lost":  func(ask func() (*item.Item, error)) (*item.Item, error) { _, _ = ask(); return nil, lost },
		"the request was lost": func(func() (*item.Item, error)) (*item.Item, error) { return nil, lost },
		"it was answered":      func(ask func() (*item.Item, error)) (*item.Item, error) { return ask() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.add("g", "data")
				times := 0
				b.claim = func(ctx context.Context, c *item.Claim, ask func() (*item.Item, error)) (*item.Item, error) {
					if c.Client != 1 {
						return ask()
					}
					switch times++; times {
					case 1:
						it, err := first(ask)
						<-ctx.Done()
						return it, err
					case 2: // once more
						return nil, lost
					}
					return ask()
				}
				stop := b.work(taskstore.WorkerOptions{}, func(context.Context, *item.Item) (item.Update, error) {
					b.t.Error("the item is handled after the worker was stopped")
					return item.Update{}, nil
				})
				synctest.Wait()
				stop()
				for i, c := range b.claims {
					if c.Key != b.claims[0].Key || i > 0 && c.Wait != 0 {
						b.t.Errorf("claim %d is %+v, the first %+v", i, c, b.claims[0])
					}
				}
				b.wantAvailable("data")
			})
		})
	}
}

func TestWorker_StopsWithinTwoSecondsThoughNobodyAnswersItsClaim(t *testing.T) {
	bubble(t, func(b *bench) {
		b.claim = func(ctx context.Context, _ *item.Claim, _ func() (*item.Item, error)) (*item.Item, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", task.ErrUnknown, ctx.Err())
		}
		stop := b.work(taskstore.WorkerOptions{Slots: 3}, func(context.Context, *item.Item) (item.Update, error) { return item.Update{}, nil })
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took > 2*time.Second {
			b.t.Errorf("it stopped after %s", took)
		}
	})
}

func TestWorker_DoesNotCancelARenewalUnderWayAndFinishesUnderTheIdThatItMakes(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "data")
		b.update = func(ctx context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
			if len(u.Changes) == 1 && u.Changes[0].Keep {
				made, err := ask()
				if time.Sleep(2 * time.Second); ctx.Err() != nil {
					b.t.Error("a renewal was cancelled")
				}
				return made, err
			}
			return ask()
		}
		stop := b.work(taskstore.WorkerOptions{Duration: 6 * time.Second}, func(ctx context.Context, it *item.Item) (item.Update, error) {
			time.Sleep(4 * time.Second) // the renewal is under way from 3 s to 5 s
			return item.Update{Adds: []item.Add{{Group: "done"}}}, nil
		})
		time.Sleep(4500 * time.Millisecond)
		stop()
		if len(b.left("done")) != 1 || len(b.left("g")) != 0 {
			b.t.Errorf("done: %q; left: %q", b.left("done"), b.left("g"))
		}
	})
}

func TestWorker_TheItemsIdOfTheHandlerStandsForWhateverItIsByThen(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "1")
		stop := b.work(taskstore.WorkerOptions{Duration: 2 * time.Second}, func(ctx context.Context, it *item.Item) (item.Update, error) {
			time.Sleep(5 * time.Second)
			if len(it.Data) == 3 {
				return item.Update{Depends: []int64{it.ID}, Deletes: []int64{it.ID}, Adds: []item.Add{{Group: "done", Data: it.Data}}}, nil
			}
			return item.Update{Depends: []int64{it.ID}, Changes: []item.Change{{ID: it.ID, Data: append(it.Data, '1')}}}, nil
		})
		time.Sleep(16 * time.Second)
		stop()
		if got := b.left("done"); len(got) != 1 || got[0] != "111" || len(b.left("g")) != 0 {
			b.t.Errorf("done: %q; left: %q", got, b.left("g"))
		}
	})
}

func TestWorker_GoesOnAfterTheClusterWasAwayAndItsWorkIsDoneOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "a", "b", "c")
		random := rand.New(rand.NewPCG(1, 2))
		lose := func() bool { b.mu.Lock(); defer b.mu.Unlock(); return random.IntN(3) > 0 }
		b.update = func(_ context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
			made, err := ask()
			if u.Client == 1 && lose() {
				return nil, fmt.Errorf("%w: the answer is lost", task.ErrUnknown)
			}
			return made, err
		}
		b.claim = func(_ context.Context, c *item.Claim, ask func() (*item.Item, error)) (*item.Item, error) {
			if lose() {
				return nil, fmt.Errorf("%w: away", store.ErrUnavailable)
			}
			it, err := ask()
			if lose() {
				return nil, fmt.Errorf("%w: the answer is lost", task.ErrUnknown)
			}
			return it, err
		}
		stop := b.work(taskstore.WorkerOptions{}, func(ctx context.Context, it *item.Item) (item.Update, error) {
			return item.Update{Adds: []item.Add{{Group: "done", Data: it.Data}}}, nil
		})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		stop()
		got := b.left("done")
		slices.Sort(got)
		if strings.Join(got, "") != "abc" || len(b.left("g")) != 0 {
			b.t.Errorf("done: %q; left: %q", got, b.left("g"))
		}
	})
}

// Clocks are set right: a worker whose claims and updates are refused because of them goes on, and loses nothing.
func TestWorker_GoesOnOnceClocksAreSetRight(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "a", "b")
		began := time.Now()
		refuse := func() error {
			if d := time.Since(began); d < time.Minute || d > 2*time.Minute && d < 3*time.Minute {
				return &store.InvalidError{Field: "clock", Problem: "an hour ahead"}
			}
			return nil
		}
		b.update = func(_ context.Context, u *item.Update, ask func() ([]item.Item, error)) ([]item.Item, error) {
			if err := refuse(); err != nil && u.Client == 1 {
				return nil, err
			}
			return ask()
		}
		b.claim = func(_ context.Context, _ *item.Claim, ask func() (*item.Item, error)) (*item.Item, error) {
			if err := refuse(); err != nil {
				return nil, err
			}
			return ask()
		}
		o := taskstore.WorkerOptions{Slots: 1, MaxClaims: 1, RetryAfter: time.Second}
		stop := b.work(o, func(ctx context.Context, it *item.Item) (item.Update, error) {
			time.Sleep(75 * time.Second) // the first one ends while clocks are wrong again
			return item.Update{Adds: []item.Add{{Group: "done", Data: it.Data}}}, nil
		})
		time.Sleep(10 * time.Minute)
		stop()
		failed := len(b.left("g/err"))
		if claims := len(b.claims); len(b.left("done"))+failed != 2 || failed > 1 || len(b.left("g")) != 0 || claims > 60 {
			b.t.Errorf("done: %q; failed: %d; left: %q; %d claims", b.left("done"), failed, b.left("g"), claims)
		}
	})
}

func TestWorker_RunEndsWithAnErrorThatNoRepetitionHelpsAndStopsItsOtherHandlers(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "data")
		b.claim = func(_ context.Context, _ *item.Claim, ask func() (*item.Item, error)) (*item.Item, error) {
			if it, err := ask(); it != nil {
				return it, err
			}
			return nil, task.ErrClosed
		}
		w, err := taskstore.NewWorker(b.s, "g", func(ctx context.Context, _ *item.Item) (item.Update, error) {
			<-ctx.Done()
			return item.Update{}, nil
		}, taskstore.WorkerOptions{Slots: 2})
		if err != nil {
			b.t.Fatal(err)
		}
		if err := w.Run(b.t.Context()); !errors.Is(err, task.ErrClosed) {
			b.t.Errorf("run: %v", err)
		}
	})
}

func TestNewWorker_RefusesBadInputByField(t *testing.T) {
	bubble(t, func(b *bench) {
		h := func(context.Context, *item.Item) (item.Update, error) { return item.Update{}, nil }
		for want, try := range map[string]func() (*taskstore.Worker, error){
			"store": func() (*taskstore.Worker, error) { return taskstore.NewWorker(nil, "g", h, taskstore.WorkerOptions{}) },
			"group": func() (*taskstore.Worker, error) { return taskstore.NewWorker(b.s, "", h, taskstore.WorkerOptions{}) },
			"handler": func() (*taskstore.Worker, error) {
				return taskstore.NewWorker(b.s, "g", nil, taskstore.WorkerOptions{})
			},
			"slots": func() (*taskstore.Worker, error) {
				return taskstore.NewWorker(b.s, "g", h, taskstore.WorkerOptions{Slots: 1_001})
			},
			"duration": func() (*taskstore.Worker, error) {
				return taskstore.NewWorker(b.s, "g", h, taskstore.WorkerOptions{Duration: 99 * time.Millisecond})
			},
			"retry after": func() (*taskstore.Worker, error) {
				return taskstore.NewWorker(b.s, "g", h, taskstore.WorkerOptions{RetryAfter: -1})
			},
		} {
			_, err := try()
			if bad, is := errors.AsType[*store.InvalidError](err); !is || bad.Field != want {
				b.t.Errorf("%s: %v", want, err)
			}
		}
	})
}

func TestWorker_MovesWhatFailsTooOftenToAGroupOfFailuresWithItsError(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "poison")
		handled := 0
		stop := b.work(taskstore.WorkerOptions{MaxClaims: 3, Duration: 10 * time.Second, RetryAfter: time.Second},
			func(context.Context, *item.Item) (item.Update, error) {
				handled++
				time.Sleep(20 * time.Second) // a renewal is no claim
				return item.Update{}, errors.New("it is poison")
			})
		time.Sleep(5 * time.Minute)
		stop()
		left := b.left("g/err")
		if handled != 3 || len(left) != 1 || len(b.left("g")) != 0 {
			b.t.Fatalf("handled %d times, left %q and the failures %q", handled, b.left("g"), left)
		}
		f, err := taskstore.ParseFailure([]byte(left[0]))
		if err != nil || f.Group != "g" || f.Claims != 3 || f.Error != "it is poison" || string(f.Data) != "poison" {
			b.t.Errorf("%+v, %v", f, err)
		}
	})
}

func TestWorker_GivesUpWhatWasClaimedTooOftenByOthersThatDied(t *testing.T) {
	bubble(t, func(b *bench) {
		b.add("g", "killer")
		for range 2 {
			if _, err := b.other.Claim(b.t.Context(), item.Claim{Group: "g", Duration: time.Second}); err != nil {
				b.t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
		}
		stop := b.work(taskstore.WorkerOptions{MaxClaims: 2, Failures: "broken"}, func(context.Context, *item.Item) (item.Update, error) {
			b.t.Error("it is handled once more")
			return item.Update{}, nil
		})
		time.Sleep(time.Minute)
		stop()
		if left := b.left("broken"); len(left) != 1 || !strings.HasSuffix(left[0], "\nkiller") || !strings.Contains(left[0], "claimed 2 times") {
			b.t.Errorf("%q", left)
		}
	})
}

// Nothing is lost of an item whose data leave no room for its failure, and nobody tries it again and again.
func TestWorker_KeepsWhatIsTooLargeToBeGivenUpForADay(t *testing.T) {
	bubble(t, func(b *bench) {
		large := strings.Repeat("x", item.MaxBytes-400)
		b.add("g", large)
		handled := 0
		stop := b.work(taskstore.WorkerOptions{MaxClaims: 2, RetryAfter: time.Second},
			func(_ context.Context, it *item.Item) (item.Update, error) {
				handled++
				it.Data[0] = 'y' // a handler may change what it was given
				return item.Update{}, errors.New(strings.Repeat("no", 200))
			})
		time.Sleep(23 * time.Hour)
		stop()
		updates := len(b.seen())
		if left := b.left("g"); updates > 20 || handled != 2 || len(left) != 1 || left[0] != large || len(b.left("g/err")) != 0 {
			b.t.Errorf("handled %d times, %d items are left after %d updates", handled, len(left), updates)
		}
	})
}

func TestParseFailure_ReadsWhatEncodeWritesAndNothingElse(t *testing.T) {
	want := taskstore.Failure{Group: "g", Claims: 7, Error: "two\nlines", Data: []byte("a\nb\xff")}
	if got, err := taskstore.ParseFailure(want.Encode()); err != nil || got.Group != "g" || got.Claims != 7 || got.Error != want.Error || string(got.Data) != string(want.Data) {
		t.Errorf("%+v, %v", got, err)
	}
	long := taskstore.Failure{Error: strings.Repeat("\u00e9", 2000)}
	if got, err := taskstore.ParseFailure(long.Encode()); err != nil || len(got.Error) > 1<<10 {
		t.Errorf("an error of %d bytes, %v", len(got.Error), err)
	}
	for _, data := range []string{"", "data", "{}", "[1]\n"} {
		if _, err := taskstore.ParseFailure([]byte(data)); err == nil {
			t.Errorf("%q is read", data)
		}
	}
}

func TestWorker_ThatHasNothingToDoAsksSeldomHoweverManySlotsItHas(t *testing.T) {
	bubble(t, func(b *bench) {
		stop := b.work(taskstore.WorkerOptions{Slots: 1000}, func(context.Context, *item.Item) (item.Update, error) { return item.Update{}, nil })
		time.Sleep(time.Minute)
		b.mu.Lock()
		n := len(b.claims)
		b.mu.Unlock()
		b.add("g", slices.Repeat([]string{"x"}, 100)...)
		time.Sleep(time.Minute)
		stop()
		if n > 3*24 {
			b.t.Errorf("asked %d times in a minute", n)
		}
		if left := b.left("g"); len(left) > 0 {
			b.t.Errorf("%d items are left", len(left))
		}
	})
}
