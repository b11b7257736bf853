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

	"taskledger/work/internal/threads"
)

func numbers(n int) func(context.Context) iter.Seq2[int, error] {
	return func(context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i+1, nil) {
					return
				}
			}
		}
	}
}

// withThreads runs a test with one thread and with three.
func withThreads(t *testing.T, test func(t *testing.T, threads int)) {
	t.Helper()
	for _, threads := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) { test(t, threads) })
	}
}

// Some verdicts are told before their processor has come back, some a second later.
func TestRun_AnItemWhoseVerdictComesLaterKeepsItsKeyAndNoThread(t *testing.T) {
	withThreads(t, func(t *testing.T, n int) {
		later := threads.NewLater[int]()
		var mu sync.Mutex
		var began []int
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: n,
			Items:   numbers(20),
			Key:     func(i int) string { return fmt.Sprint(i % 4) },
			Later:   later,
			Process: func(_ context.Context, it *threads.Item[int]) threads.Verdict {
				mu.Lock()
				defer mu.Unlock()
				began = append(began, it.Value)
				v := threads.Verdict{Again: it.Value%5 == 0 && it.Try == 1}
				if it.Value%2 == 0 {
					later.Tell(it, v)
				} else {
					time.AfterFunc(time.Second, func() { later.Tell(it, v) })
				}
				return threads.Verdict{Later: true}
			},
		})
		if err != nil || len(began) != 24 {
			t.Errorf("%d threads: %v, %d", n, err, began)
		}
		last := map[int]int{}
		for _, i := range began {
			if i < last[i%4] {
				t.Errorf("item %d begins after item %d", i, last[i%4])
			}
			last[i%4] = i
		}
	})
}

func TestRun_AVerdictThatStopsMayComeLater(t *testing.T) {
	withThreads(t, func(t *testing.T, n int) {
		later, stop := threads.NewLater[int](), errors.New("stop")
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: n,
			Items:   numbers(20),
			Later:   later,
			Process: func(_ context.Context, it *threads.Item[int]) threads.Verdict {
				if it.Value != 5 {
					return threads.Verdict{}
				}
				time.AfterFunc(time.Second, func() { later.Tell(it, threads.Verdict{Stop: stop}) })
				return threads.Verdict{Later: true}
			},
		})
		if err != stop {
			t.Errorf("%v", err)
		}
		later.Tell(nil, threads.Verdict{}) // nobody waits, and nobody is waited for
	})
}

func TestRun_AdmitsItemsInTheirOrderUntilTheLastOne(t *testing.T) {
	withThreads(t, func(t *testing.T, n int) {
		var admitted, processed []int
		var mu sync.Mutex
		c := threads.Config[int]{
			Threads: n,
			Items:   numbers(20),
			Admit: func(i int) (threads.Admission, error) {
				admitted = append(admitted, i)
				return threads.Admission{Skip: i == 3, Last: i == 6}, nil
			},
			Process: func(_ context.Context, it *threads.Item[int]) threads.Verdict {
				mu.Lock()
				defer mu.Unlock()
				processed = append(processed, it.Value)
				return threads.Verdict{}
			},
		}
		err := threads.Run(t.Context(), c)
		slices.Sort(processed)
		if err != nil || !slices.Equal(admitted, []int{1, 2, 3, 4, 5, 6}) || !slices.Equal(processed, []int{1, 2, 4, 5, 6}) {
			t.Errorf("%v, admitted %d, processed %d", err, admitted, processed)
		}
		wrong := errors.New("wrong")
		c.Admit = func(int) (threads.Admission, error) { return threads.Admission{}, wrong }
		if _, is := errors.AsType[*threads.IteratorError](threads.Run(t.Context(), c)); !is {
			t.Error("an item that is refused is no error of the iterator")
		}
	})
}

func TestRun_FetchesNothingWhileThereIsNoRoom(t *testing.T) {
	withThreads(t, func(t *testing.T, n int) {
		admitted, open := 0, 0
		var mu sync.Mutex
		err := threads.Run(t.Context(), threads.Config[int]{
			Threads: n,
			Ahead:   50,
			Items:   numbers(40),
			Room: func() bool {
				mu.Lock()
				defer mu.Unlock()
				return open < 5
			},
			Admit: func(int) (threads.Admission, error) {
				mu.Lock()
				defer mu.Unlock()
				admitted++
				if open++; open > 5 {
					t.Errorf("%d items are open", open)
				}
				return threads.Admission{}, nil
			},
			Process: func(context.Context, *threads.Item[int]) threads.Verdict {
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				open--
				return threads.Verdict{}
			},
		})
		if err != nil || admitted != 40 {
			t.Errorf("%v, %d items", err, admitted)
		}
	})
}
