package streams_test

import (
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/testkit"
	"taskledger/task"
)

// kills returns how often the node of the worker is killed.
func kills() int { return testkit.Times(2, 3) }

// pace is the time that a change takes.
func pace() time.Duration {
	if testkit.Whole() {
		return time.Millisecond
	}
	return 10 * time.Millisecond
}

// harass kills the node of the worker, and restarts NATS behind the first kill, in a proof behind the second one, too,
// whenever a part of the changes is processed.
func (w *world) harass(before func()) {
	w.Helper()
	n := len(w.script.all)
	for i := range kills() {
		w.awaitDone(n * (i + 1) / (kills() + 2))
		before()
		w.crash(w.target.node())
		if i == 0 || testkit.Whole() && i == 1 {
			w.cluster.NATS.Stop()
			w.cluster.NATS.Start()
		}
	}
}

func TestStream_WorkersKilledInTurnKeepTheOrderAndTheTokenPassesNothing(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	s := many(testkit.Times(2_000, 100_000), testkit.Times(99, 999))
	w := newWorld(t, s, pace(), task.Policy{}, func(w *world, _ string, s *stream) {
		s.Threads = 8
		w.fetch(s)
	})
	w.submit()
	w.harass(func() {})
	w.awaitStatus(followed, task.Success)
	w.target.wantAll(t, s)
	w.judge()
	if all := w.moved(); len(all) == 0 || place(all[len(all)-1].Token) != uint64(len(s.all)) {
		t.Errorf("%d moves, which do not end with the last change", len(all))
	}
	done, again := w.target.count()
	t.Logf("%d changes, %d processed again", done, again)
}

func TestStream_PushedWorkersKilledWithUnacknowledgedMessagesKeepTheOrder(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	s := many(testkit.Times(2_000, 100_000), testkit.Times(99, 999))
	w := newWorld(t, s, pace(), task.Policy{}, func(w *world, node string, s *stream) {
		s.Threads = 8
		w.receive(node, s)
	})
	js := w.push()
	w.submit()
	w.harass(func() {
		w.await("ten messages are not acknowledged", func() bool {
			unacknowledged, _ := w.left(js)
			return unacknowledged >= 10
		})
	})
	w.awaitAcknowledged(js)
	w.target.wantAll(t, s)
	w.must(w.client.Operations().Cancel(w.within(), followed, "enough"))
	w.awaitStatus(followed, task.Failure)
	var items uint64
	for ev, err := range w.client.Ledger().History(w.within(), followed) {
		w.must(err)
		if m, is := ev.Body.(*events.TokenMoved); is {
			items += m.Items.Done
		}
	}
	done, again := w.target.count()
	if items == 0 || items > uint64(done)+uint64(again) { // a worker that is killed has not told the last second
		t.Errorf("the journal counts %d changes, %d were processed, and %d again", items, done, again)
	}
	t.Logf("%d changes, %d processed again, %d counted", done, again, items)
}
