package work_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/work"
	"taskledger/work/workledger"
)

// took returns how long a run of 800 changes of 5 ms each takes.
func took(t *testing.T, threads int64, key func(place int) string) time.Duration {
	t.Helper()
	src, r := &resource{}, newStreamRecord()
	for place := range 800 {
		src.keys = append(src.keys, key(place))
	}
	src.process = func(context.Context, int) error {
		time.Sleep(4 * time.Millisecond) // and one more to apply it
		return nil
	}
	begun := time.Now()
	runStream(t, r, src.stream(threads))
	src.inOrder(t)
	return time.Since(begun)
}

func TestStream_EightThreadsOnEightBusyKeysAreFiveTimesAsFastAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := func(place int) string { return fmt.Sprint(place % 8) }
		one, eight := took(t, 1, key), took(t, 8, key)
		t.Logf("%s by one thread, %s by eight", one, eight)
		if one < 5*eight {
			t.Errorf("%s by one thread, %s by eight", one, eight)
		}
	})
}

func TestStream_AHotKeyDelaysItsOwnChangesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hot := took(t, 8, func(place int) string {
			if place%10 == 0 {
				return "hot"
			}
			return fmt.Sprint(place % 97)
		})
		best := 800 * 5 * time.Millisecond / 8
		t.Logf("%s, at best %s", hot, best)
		if 2*hot > 3*best {
			t.Errorf("%s, want at most 1.5 times %s", hot, best)
		}
	})
}

// Whatever the source and Process do, moves are a second apart, and what a killed attempt has processed behind the last
// of them is a second old at most.
func TestStream_MovesItsTokenAtMostOnceASecondAndThenEachSecond(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(1000), newStreamRecord()
		begun := time.Now()
		times := map[int]time.Time{}
		src.process = func(_ context.Context, place int) error {
			time.Sleep(time.Duration(place%100) * time.Millisecond)
			src.mu.Lock()
			defer src.mu.Unlock()
			times[place] = time.Now()
			return nil
		}
		src.fetch = func(_ context.Context, place int) error {
			if place%300 == 0 {
				time.Sleep(10 * time.Second)
			}
			return nil
		}
		runStream(t, r, src.stream(threads))
		last, token := begun, "0"
		for i, at := range r.movedAt {
			if gap := at.Sub(last); gap < time.Second && i < len(r.movedAt)-1 {
				t.Errorf("move %d comes %s after the one before", i+1, gap)
			}
			token = cmp.Or(r.moves[i].Token, token)
			for place := number(token) + 1; place <= 1000; place++ {
				if end := times[place]; end.Before(at.Add(-1200 * time.Millisecond)) {
					t.Errorf("at move %d change %d is processed since %s", i+1, place, at.Sub(end))
				}
			}
			last = at
		}
		if n := time.Since(begun) / time.Second; len(r.moves) > int(n)+1 || len(r.moves) < 10 {
			t.Errorf("%d moves in %d s", len(r.moves), n)
		}
		wantToken(t, r, "1000")
		if m := r.moves[len(r.moves)-1]; m.Open != 0 || !m.Oldest.IsZero() {
			t.Errorf("the last move is %+v", m)
		}
	})
}

func TestStream_TellsWhatIsOpenAndSinceWhen(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(40), newStreamRecord()
		begun := time.Now()
		src.process = func(_ context.Context, place int) error {
			if place == 1 {
				time.Sleep(time.Minute)
			}
			return nil
		}
		runStream(t, r, src.stream(threads))
		first := r.moves[0]
		if first.Open != 1 || !first.Oldest.Equal(begun) || first.Token != "" || !r.movedAt[0].Equal(begun.Add(time.Second)) {
			t.Errorf("%d moves, the first is %+v", len(r.moves), first)
		}
	})
}

// A change that hangs does not have those behind it pile up.
func TestStream_FetchesNoFurtherThanTenThousandChangesPastAnOpenOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src, r := objects(12_000), newStreamRecord()
		var fetched, atMost atomic.Int64
		src.fetch = func(_ context.Context, place int) error {
			fetched.Store(int64(place))
			return nil
		}
		src.process = func(_ context.Context, place int) error {
			if place == 1 {
				time.Sleep(time.Hour)
				atMost.Store(fetched.Load())
			}
			return nil
		}
		runStream(t, r, src.stream(2))
		if n := atMost.Load(); n > 10_001 || n < 10_000 {
			t.Errorf("%d changes were fetched while the first was open", n)
		}
		wantToken(t, r, "12000")
	})
}

// An attempt that is killed leaves the token of its last move: the next one processes what came after, and no more.
func TestStream_AKilledAttemptRepeatsOnlyWhatIsBehindItsLastMove(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(100), newStreamRecord()
		src.process = func(_ context.Context, place int) error {
			time.Sleep(99 * time.Millisecond)
			if place == 50 {
				r.mu.Lock()
				r.failMove = workledger.ErrOver
				r.mu.Unlock()
			}
			return nil
		}
		err := attemptStream(t, t.Context(), r, src.stream(threads))
		if !errors.Is(err, workledger.ErrOver) {
			t.Fatal(err)
		}
		r.failMove = nil
		src.process = nil
		before := number(r.token)
		if before == 0 || before >= 50 || len(src.applied) < 50 {
			t.Errorf("token %q, %d applied", r.token, len(src.applied))
		}
		first := len(src.applied)
		runStream(t, r, src.stream(threads))
		wantToken(t, r, "100")
		wantItems(t, r, work.Counts{Done: 100})
		if again := src.applied[first:]; again[0] < before || len(again) != 100-before {
			t.Errorf("token %s, processed again: %s", strconv.Itoa(before), fmt.Sprint(again))
		}
	})
}

// Changes end while a move is under way, which may hold some, and each is counted once.
func TestStream_CountsWhatEndsWhileItMoves(t *testing.T) {
	withThreads(t, func(t *testing.T, threads int64) {
		src, r := objects(200), newStreamRecord()
		r.slow = 70 * time.Millisecond
		src.process = func(_ context.Context, place int) error {
			time.Sleep(9 * time.Millisecond)
			if place%50 == 25 {
				return errDisk
			}
			return nil
		}
		s := src.stream(threads)
		s.Rules = []work.Rule{{React: work.RetryLater}}
		runStream(t, r, s)
		wantToken(t, r, "200")
		wantItems(t, r, work.Counts{Done: 196, Failed: 4})
		if len(r.holds) != 4 {
			t.Errorf("holds %v", r.holds)
		}
	})
}
