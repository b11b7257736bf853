package taskstore

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// However calls come and go, between the moment when one may have succeeded and its answer no more than 63 others succeed.
func TestWindow_NoKeyIsForgottenBeforeItsAnswerIsKnown(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for seed := range uint64(100) {
		walk(t, ended, rand.New(rand.NewPCG(seed, 0)))
	}
}

// walk lets calls come and go; the newest is mostly the first to be answered. ended is a context that has ended: nobody waits.
func walk(t *testing.T, ended context.Context, r *rand.Rand) {
	t.Helper()
	w := newWindow()
	var calls []*underway
	after := map[*underway]int{} // successes since it may have succeeded itself
	for range 600 {
		switch what := r.IntN(10); {
		case what < 6:
			one, err := w.enter(ended, what > 0)
			if err != nil {
				continue
			}
			calls = append(calls, one)
			if what > 0 {
				after[one] = 0
			}
		case len(calls) == 0:
		case what == 6:
			lost := calls[r.IntN(len(calls))]
			lost.hold()
			if _, holds := after[lost]; !holds {
				after[lost] = 0
			}
		default:
			at := len(calls) - 1
			if r.IntN(20) == 0 {
				at = r.IntN(len(calls))
			}
			one := calls[at]
			calls = append(calls[:at], calls[at+1:]...)
			delete(after, one)
			one.leave(what < 9)
			for other := range after {
				if what < 9 {
					after[other]++
				}
				if after[other] >= remembered {
					t.Fatalf("%d others have succeeded since a call whose answer is not known", after[other])
				}
			}
		}
		if len(calls) > remembered {
			t.Fatalf("%d calls are under way", len(calls))
		}
	}
}

func TestWindow_ClaimsThatWaitLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWindow()
		var first *underway
		for i := range mayWait {
			one, err := w.enter(t.Context(), false)
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = one
			}
		}
		entered := make(chan struct{})
		go func() {
			if _, err := w.enter(t.Context(), false); err != nil {
				t.Error(err)
			}
			close(entered)
		}()
		for range 200 { // others come and go meanwhile
			one, err := w.enter(t.Context(), true)
			if err != nil {
				t.Fatal(err)
			}
			one.leave(true)
		}
		synctest.Wait()
		select {
		case <-entered:
			t.Error("one claim too many waits")
		default:
		}
		first.leave(false)
		<-entered
	})
}
