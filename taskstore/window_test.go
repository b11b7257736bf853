package taskstore

import (
	"context"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// However calls come and go, between the moment when one may have succeeded and its answer no more than 63 others succeed.
func TestWindow_NoKeyIsForgottenBeforeItsAnswerIsKnown(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	rapid.Check(t, func(t *rapid.T) {
		w := newWindow()
		var calls []*underway
		after := map[*underway]int{} // successes since it may have succeeded itself
		for range rapid.IntRange(0, 400).Draw(t, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(t, "what"); {
			case what < 6:
				holds := what > 0
				one, err := w.enter(ended, holds)
				if err != nil {
					continue
				}
				calls = append(calls, one)
				if holds {
					after[one] = 0
				}
			case len(calls) == 0:
			case what == 6:
				one := rapid.SampledFrom(calls).Draw(t, "lost")
				one.hold()
				if _, holds := after[one]; !holds {
					after[one] = 0
				}
			default:
				at := rapid.IntRange(0, len(calls)-1).Draw(t, "answered")
				one := calls[at]
				calls = append(calls[:at], calls[at+1:]...)
				delete(after, one)
				succeeded := what < 9
				one.leave(succeeded)
				for other := range after {
					if succeeded {
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
	})
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
