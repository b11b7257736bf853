package collections_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	"taskledger/collections/taskjson"
	"taskledger/events"
	"taskledger/internal/testkit"
)

// A run that is cancelled while it succeeds has one outcome: that of the journal, which its status tells, and the
// answer to the cancel is no other one.
func TestCancel_AgainstASuccessHasOneOutcome(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	w := newWorld(t, 8, "a", "b", "c")
	const atOnce, most = 10, 1000
	races := testkit.Times(100, most)
	w.set(numbered(atOnce))
	seen := map[string]int{}
	both := func() bool { // each has won
		return seen["200 FAILED"] > 0 && seen["409 SUCCESS"]+seen["200 SUCCESS"] > 0
	}
	random := testkit.Rand(t)
	for i := 0; i < races || i < most && !both(); i += atOnce {
		ids := w.together(atOnce, func(k int) answer {
			return w.ask(k, sam, "POST", fmt.Sprintf("/tasks?source=my_shop&collection=c%d", k))
		})
		var racing sync.WaitGroup
		answers := make([]answer, atOnce)
		for range atOnce {
			r := w.next()
			k := int(r.collection[1] - '0')
			cancel := func() { answers[k] = w.ask(i+k, sam, "POST", "/tasks/"+ids[k].TaskID+"/cancel") }
			switch (i/atOnce + k) % 3 {
			case 0: // the success leaves first
				r.ends <- nil
				racing.Go(cancel)
			case 1: // the success leaves while the cancel is under way
				turns := random.IntN(10_000)
				racing.Go(cancel)
				racing.Go(func() {
					for range turns {
						runtime.Gosched()
					}
					r.ends <- nil
				})
			case 2: // the cancel is answered first
				racing.Go(func() {
					cancel()
					r.ends <- nil
				})
			}
		}
		racing.Wait()
		for k := range atOnce {
			seen[w.wantOneOutcome(ids[k].TaskID, answers[k])]++
		}
	}
	t.Logf("%v", seen)
	if !both() {
		t.Errorf("cancel or success never won: %v", seen)
	}
}

// wantOneOutcome fails unless the journal, the status and the answer to the cancel of a run agree. It returns what came
// of the race.
func (w *world) wantOneOutcome(id string, cancelled answer) string {
	w.Helper()
	inside := []events.Kind{events.KindCancelRequested, events.KindSucceeded, events.KindFailed}
	var shown answer
	for !shown.Status.Final() {
		if shown = w.ask(0, sam, "GET", "/tasks/"+id); shown.status != 200 {
			w.Fatalf("%d %s", shown.status, shown.text)
		}
	}
	is := w.journal(id, inside...)
	var want []events.Kind
	switch {
	case cancelled.status == 409 && shown.Status == taskjson.Success:
		want = []events.Kind{events.KindSucceeded}
	case cancelled.status == 200 && shown.Status == taskjson.Success:
		want = []events.Kind{events.KindCancelRequested, events.KindSucceeded}
	case cancelled.status == 200 && shown.Status == taskjson.Failed:
		want = []events.Kind{events.KindCancelRequested, events.KindFailed}
	}
	if !slices.Equal(is, want) {
		w.Errorf("cancel is answered %d, the run is %s, and its events are %v", cancelled.status, shown.Status, is)
	}
	return fmt.Sprintf("%d %s", cancelled.status, shown.Status)
}
