package threads_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"taskledger/work/internal/order"
	"taskledger/work/internal/threads"
)

// job says what happens to an item of a drawn run.
type job struct {
	key     string
	takes   []time.Duration // of each try; after all but the last the item rests
	restFor time.Duration
	fetch   time.Duration // the iterator takes so long for it
}

func drawJob(t *rapid.T) job {
	span := rapid.Map(rapid.IntRange(0, 3), func(n int) time.Duration { return time.Duration(n) * time.Second })
	return job{
		key:     rapid.SampledFrom([]string{"", "a", "a", "b", "c"}).Draw(t, "key"),
		takes:   rapid.SliceOfN(span, 1, 3).Draw(t, "takes"),
		restFor: span.Draw(t, "rest"),
		fetch:   rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "fetch"),
	}
}

// trace records what a run does, and what of it must not be.
type trace struct {
	jobs    []job
	threads int

	mu      sync.Mutex
	active  map[string]int64 // by key, the ordinal of the item that has begun and not ended
	last    map[string]int64
	running int
	ended   []int64
	wrong   []string
}

func (r *trace) complain(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *trace) begin(it *threads.Item[job]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running++; r.running > r.threads {
		r.complain("%d items are processed side by side by %d threads", r.running, r.threads)
	}
	if it.Key == "" {
		return
	}
	if other := r.active[it.Key]; other != 0 && other != it.Ordinal {
		r.complain("item %d of key %s begins while item %d has not ended", it.Ordinal, it.Key, other)
	}
	if it.Try == 1 && it.Ordinal <= r.last[it.Key] {
		r.complain("item %d of key %s begins after item %d", it.Ordinal, it.Key, r.last[it.Key])
	}
	r.active[it.Key], r.last[it.Key] = it.Ordinal, it.Ordinal
}

func (r *trace) end(it *threads.Item[job], ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	if ended {
		r.active[it.Key] = 0
		r.ended = append(r.ended, it.Ordinal)
	}
}

func (r *trace) process(_ context.Context, it *threads.Item[job]) threads.Verdict {
	r.begin(it)
	time.Sleep(it.Value.takes[it.Try-1])
	again := it.Try < len(it.Value.takes)
	r.end(it, !again)
	return threads.Verdict{Again: again, After: it.Value.restFor}
}

func (r *trace) items(context.Context) iter.Seq2[job, error] {
	return func(yield func(job, error) bool) {
		for _, j := range r.jobs {
			if time.Sleep(j.fetch); !yield(j, nil) {
				return
			}
		}
	}
}

func TestRun_ProcessesEachItemOnceAndThoseOfAKeyInTheirOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &trace{
			jobs:    rapid.SliceOfN(rapid.Custom(drawJob), 0, 40).Draw(rt, "jobs"),
			threads: rapid.IntRange(1, 5).Draw(rt, "threads"),
			active:  map[string]int64{},
			last:    map[string]int64{},
		}
		var err error
		synctest.Test(t, func(t *testing.T) {
			err = threads.Run(t.Context(), threads.Config[job]{
				Threads: r.threads,
				Items:   r.items,
				Key:     func(j job) string { return j.key },
				Process: r.process,
			})
		})
		slices.Sort(r.ended)
		for i, ordinal := range r.ended {
			if ordinal != int64(i)+1 {
				rt.Fatalf("the items %d ended", r.ended)
			}
		}
		if err != nil || len(r.ended) != len(r.jobs) || len(r.wrong) > 0 {
			rt.Fatalf("%d of %d items ended: %v, %q", len(r.ended), len(r.jobs), err, r.wrong)
		}
	})
}

func TestRun_DelaysByAHotKeyItsOwnItemsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hot, others = order.MaxAside, 200
		began := time.Now()
		var mu sync.Mutex
		var slowest time.Duration
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: 4,
			Items:   counted(hot + others),
			Key: func(n int) string {
				if n <= hot {
					return "hot"
				}
				return fmt.Sprint(n)
			},
			Process: func(_ context.Context, it *threads.Item[int]) (v threads.Verdict) {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				if it.Key != "hot" {
					slowest = max(slowest, time.Since(began))
				}
				return v
			},
		})
		// At least three of four threads are left for the others.
		if want := (others + 2) / 3 * time.Second; err != nil || slowest > want {
			t.Errorf("the last other item ended after %s, want %s at most: %v", slowest, want, err)
		}
	})
}

func TestRun_FetchesNoMoreThanItMaySetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		release := make(chan bool)
		over := make(chan error)
		go func() {
			over <- threads.Run(t.Context(), threads.Config[int]{
				Threads: 2,
				Items:   counted(3000),
				Key: func(int) string {
					fetched++
					return "hot"
				},
				Process: func(context.Context, *threads.Item[int]) (v threads.Verdict) {
					<-release
					return v
				},
			})
		}()
		synctest.Wait()
		if want := 1 + order.MaxAside; fetched != want {
			t.Errorf("%d items were fetched, want %d", fetched, want)
		}
		close(release)
		if err := <-over; err != nil || fetched != 3000 {
			t.Errorf("%d items were fetched: %v", fetched, err)
		}
	})
}

func TestRun_QueuesTwoItemsForEachThread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetched := 0
		release := make(chan bool)
		over := make(chan error)
		go func() {
			over <- threads.Run(t.Context(), threads.Config[int]{
				Threads: 3,
				Items:   counted(30),
				Key: func(int) string {
					fetched++
					return ""
				},
				Process: func(context.Context, *threads.Item[int]) (v threads.Verdict) {
					<-release
					return v
				},
			})
		}()
		synctest.Wait()
		if fetched != 3+6 {
			t.Errorf("%d items were fetched while 3 are processed, want 9", fetched)
		}
		close(release)
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

func TestRun_HoldsTheKeyAndNoThreadWhileAnItemRests(t *testing.T) {
	inBubble(t, func(t *testing.T, n int) {
		var mu sync.Mutex
		var ended []string
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: n,
			Items:   counted(40),
			Key: func(i int) string {
				if i <= 2*n {
					return fmt.Sprint("failing", i%n)
				}
				return ""
			},
			Process: func(_ context.Context, it *threads.Item[int]) (v threads.Verdict) {
				if it.Ordinal <= int64(n) && it.Try < 3 {
					return threads.Verdict{Again: true, After: time.Hour}
				}
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, fmt.Sprint(it.Key, " ", it.Ordinal))
				return v
			},
		})
		if err != nil || len(ended) != 40 {
			t.Fatalf("%d ended: %v", len(ended), err)
		}
		free := ended[:40-2*n]
		if slices.ContainsFunc(free, func(s string) bool { return s[0] != ' ' }) {
			t.Errorf("%q ended before those without a key", free)
		}
		for i := range n {
			first := slices.Index(ended, fmt.Sprintf("failing%d %d", (i+1)%n, i+1))
			second := slices.Index(ended, fmt.Sprintf("failing%d %d", (i+1)%n, i+1+n))
			if first < 0 || first > second {
				t.Errorf("%q: want the first item of a key to end before its second one", ended)
			}
		}
	})
}

func TestRun_IsNoSuccessWhenItsContextEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, n int) {
		ctx, suspend := context.WithCancelCause(t.Context())
		started := 0
		err := threads.Run(ctx, threads.Config[int]{
			Threads: n,
			Items:   counted(1000), // returns without a word when its context has ended
			Process: func(context.Context, *threads.Item[int]) (v threads.Verdict) {
				if ctx.Err() != nil {
					t.Error("an item started after the end of the context")
				}
				if started++; started == 10 {
					suspend(errTest)
				}
				return v
			},
			Key: func(int) string { return "one after the other" },
		})
		if !errors.Is(err, errTest) || started != 10 {
			t.Errorf("got %v after %d items", err, started)
		}
	})
}

// Both the end of the context and that of the iterator are there to be seen once the item has ended, in any order.
func TestRun_IsNoSuccessWhenItsContextEndedTheIterator(t *testing.T) {
	inBubble(t, func(t *testing.T, n int) {
		for range 20 {
			ctx, suspend := context.WithCancelCause(t.Context())
			err := threads.Run(ctx, threads.Config[int]{
				Threads: n,
				Items: func(ctx context.Context) pairs {
					return func(yield func(int, error) bool) {
						yield(1, nil)
						<-ctx.Done()
					}
				},
				Process: func(context.Context, *threads.Item[int]) (v threads.Verdict) {
					suspend(errTest)
					time.Sleep(time.Second)
					return v
				},
			})
			if !errors.Is(err, errTest) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestRun_SucceedsWhenItsContextEndsWithTheLastItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, suspend := context.WithCancelCause(t.Context())
		err := threads.Run(ctx, threads.Config[int]{
			Threads: 3,
			Items:   counted(6),
			Process: func(_ context.Context, it *threads.Item[int]) (v threads.Verdict) {
				if time.Sleep(time.Duration(it.Value) * time.Second); it.Value == 5 {
					suspend(errTest)
				}
				return v
			},
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestRun_StopsAtAVerdictAndWaitsForItemsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex
		var ended []int
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: 3,
			Items:   counted(100),
			Process: func(ctx context.Context, it *threads.Item[int]) (v threads.Verdict) {
				if it.Value == 2 {
					v.Stop = errTest
					return v
				}
				time.Sleep(time.Minute)
				mu.Lock()
				defer mu.Unlock()
				if ctx.Err() != nil {
					t.Error("an item in progress is interrupted")
				}
				ended = append(ended, it.Value)
				return v
			},
		})
		if err != errTest || len(ended) > 2 {
			t.Errorf("got %v, and the items %d ended", err, ended)
		}
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s", took)
		}
	})
}

func TestRun_OfNoItemsSucceeds(t *testing.T) {
	inBubble(t, func(t *testing.T, n int) {
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: n,
			Items:   counted(0),
			Process: nothing,
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func BenchmarkRun(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("threads=%d", n), func(b *testing.B) {
			err := threads.Run(b.Context(), threads.Config[int]{
				Threads: n,
				Items:   counted(b.N),
				Process: nothing,
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
