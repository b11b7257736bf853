package threads_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/work/internal/threads"
)

var errTest = errors.New("no disk")

type pairs = iter.Seq2[int, error]

// counted yields 1 to n, as an iterator that heeds its context and what yield returns.
func counted(n int) func(context.Context) pairs {
	return func(ctx context.Context) pairs {
		return func(yield func(int, error) bool) {
			for i := range n {
				if ctx.Err() != nil || !yield(i+1, nil) {
					return
				}
			}
		}
	}
}

func nothing(context.Context, *threads.Item[int]) (v threads.Verdict) { return v }

// inBubble runs a test in time that is made up, for a run of one thread and one of several.
func inBubble(t *testing.T, test func(t *testing.T, threads int)) {
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("threads=%d", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, n) })
		})
	}
}

func TestRun_TellsHowAnIteratorFailed(t *testing.T) {
	for _, c := range []struct {
		name  string
		items pairs
		want  string
		is    error
	}{
		{"error", func(yield func(int, error) bool) {
			_ = yield(1, nil) && yield(0, errTest)
		}, "iterator: no disk", errTest},
		{"panic", func(yield func(int, error) bool) {
			yield(1, nil)
			panic("broken")
		}, "iterator: the iterator: panic: broken", nil},
		{"end", func(yield func(int, error) bool) {
			yield(1, nil)
			runtime.Goexit()
		}, "iterator: the iterator ended its goroutine", nil},
		{"nil", nil, "iterator: the iterator: panic: runtime error: invalid memory address or nil pointer dereference", nil},
		{"on after an error", func(yield func(int, error) bool) {
			for {
				yield(0, errTest)
			}
		}, "iterator: no disk\nit yielded after it was told to stop", threads.ErrYieldedAfterStop},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, n int) {
				err := threads.Run(t.Context(), threads.Config[int]{
					Threads: n,
					Items:   func(context.Context) pairs { return c.items },
					Process: nothing,
				})
				if failure, ok := errors.AsType[*threads.IteratorError](err); !ok || err.Error() != c.want {
					t.Errorf("got %v (%v), want %s", err, failure, c.want)
				}
				if c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%v does not wrap %v", err, c.is)
				}
			})
		})
	}
}

func TestRun_TellsOfAnIteratorThatGoesOnWhenItIsStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, n int) {
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: n,
			Items: func(context.Context) pairs {
				return func(yield func(int, error) bool) {
					for i := 1; ; i++ {
						yield(i, nil)
					}
				}
			},
			Process: func(_ context.Context, it *threads.Item[int]) (v threads.Verdict) {
				if it.Value == 5 {
					v.Stop = errTest
				}
				return v
			},
		})
		if !errors.Is(err, errTest) || !errors.Is(err, threads.ErrYieldedAfterStop) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRun_TellsOfAnIteratorThatYieldsFromTwoGoroutines(t *testing.T) {
	inBubble(t, func(t *testing.T, n int) {
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: n,
			Items: func(context.Context) pairs {
				return func(yield func(int, error) bool) {
					for range 100 { // more than find room while none is processed
						go yield(1, nil)
					}
					synctest.Wait()
				}
			},
			Process: func(ctx context.Context, _ *threads.Item[int]) (v threads.Verdict) {
				time.Sleep(time.Minute)
				return v
			},
		})
		if !errors.Is(err, threads.ErrYieldedSideBySide) && !errors.Is(err, threads.ErrYieldedAfterReturn) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRun_TellsOfAnIteratorThatYieldsAfterItReturned(t *testing.T) {
	inBubble(t, func(t *testing.T, n int) {
		processed := 0
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: n,
			Items: func(context.Context) pairs {
				return func(yield func(int, error) bool) {
					yield(1, nil)
					go func() {
						time.Sleep(time.Minute)
						if yield(2, nil) {
							t.Error("an item was taken after its iterator had returned")
						}
					}()
				}
			},
			Process: func(context.Context, *threads.Item[int]) (v threads.Verdict) {
				processed++
				time.Sleep(time.Hour)
				return v
			},
		})
		if !errors.Is(err, threads.ErrYieldedAfterReturn) || processed != 1 {
			t.Errorf("got %v after %d items", err, processed)
		}
	})
}

func TestRun_LeavesAnIteratorBehindThatIgnoresItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, n int) {
		ctx, suspend := context.WithCancelCause(t.Context())
		release := make(chan bool)
		var abandoned threads.Abandoned
		began := time.Now()
		go func() {
			time.Sleep(time.Minute)
			suspend(errTest)
		}()
		err := threads.Run(ctx, threads.Config[int]{
			Name:    "rows of p, bucket 3",
			Threads: n,
			Items: func(context.Context) pairs {
				return func(yield func(int, error) bool) {
					yield(1, nil)
					<-release
				}
			},
			Process:   nothing,
			Grace:     5 * time.Second,
			Abandoned: &abandoned,
		})
		behind, ok := errors.AsType[*threads.AbandonedError](err)
		if !ok || !errors.Is(err, errTest) || !strings.Contains(behind.Error(), "rows of p, bucket 3") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != time.Minute+5*time.Second {
			t.Errorf("it returned after %s", took)
		}
		if got := abandoned.Names(); !slices.Equal(got, []string{"rows of p, bucket 3"}) {
			t.Errorf("%q are left behind", got)
		}
		close(release)
		synctest.Wait()
		if got := abandoned.Names(); len(got) > 0 {
			t.Errorf("%q are left behind after they returned", got)
		}
	})
}

func TestRun_TellsHowAFunctionFailed(t *testing.T) {
	for _, c := range []struct {
		name    string
		key     func(int) string
		process func(context.Context, *threads.Item[int]) threads.Verdict
		want    string
	}{
		{"panic of a key", func(int) string { panic("broken") }, nothing, "the function of keys: panic: broken"},
		{"panic of an item", nil, func(context.Context, *threads.Item[int]) threads.Verdict { panic(errTest) },
			"the function that processes an item: panic: no disk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, n int) {
				err := threads.Run(t.Context(), threads.Config[int]{
					Threads: n,
					Items:   counted(10),
					Key:     c.key,
					Process: c.process,
				})
				failure, ok := errors.AsType[*threads.PanicError](err)
				if !ok || err.Error() != c.want || !strings.Contains(string(failure.Stack), "foreign_test.go") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestRun_OutlivesAnItemThatEndsItsGoroutine(t *testing.T) {
	inBubble(t, func(t *testing.T, n int) {
		over := make(chan error, 1)
		go func() {
			defer close(over) // with one thread it is this goroutine that ends
			over <- threads.Run(t.Context(), threads.Config[int]{
				Threads: n,
				Items:   counted(10),
				Process: func(context.Context, *threads.Item[int]) threads.Verdict {
					runtime.Goexit()
					return threads.Verdict{}
				},
			})
		}()
		err := <-over
		if _, ok := errors.AsType[*threads.EndedError](err); ok != (n > 1) {
			t.Errorf("got %v", err)
		}
	})
}
