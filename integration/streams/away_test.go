package streams_test

import (
	"testing"
	"time"

	"taskledger/internal/testkit"
	"taskledger/task"
)

// away returns how long NATS is away: a minute in a proof.
func away() time.Duration { return time.Duration(testkit.Times(3, 60)) * time.Second }

// sent counts the messages that sources have sent.
func (w *world) sent() (n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range w.conns {
		for _, conn := range all {
			n += conn.Stats().OutMsgs
		}
	}
	return n
}

// wantFew waits for a time in which nothing comes, and reports an error if sources have sent more than 20 messages a
// second meanwhile.
func (w *world) wantFew(within time.Duration) {
	w.Helper()
	before := w.sent()
	w.must(short(w.Context(), within))
	sent := w.sent() - before
	if most := 20 * uint64(within.Seconds()); sent > most {
		w.Errorf("%d messages in %s, want %d at most", sent, within, most)
	}
	w.Logf("%d messages in %s", sent, within)
}

func TestStream_PushedOutlivesNATSAwayBeforeItBeginsAndInItsMiddle(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	s := many(600, 30)
	w := newWorld(t, s, 2*time.Millisecond, task.Policy{MaxAttempts: 1}, func(w *world, node string, s *stream) {
		s.Threads = 3
		w.receive(node, s)
	})
	js := w.push()
	w.cluster.NATS.Stop()
	w.submit()
	w.await("a source is open", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.conns) > 0
	})
	w.wantFew(away())
	if done, _ := w.target.count(); done > 0 {
		t.Errorf("%d changes came from nowhere", done)
	}
	w.cluster.NATS.Start()
	for i := range 2 {
		w.awaitDone(len(s.all) * (i + 1) / 3)
		w.cluster.NATS.Stop()
		w.wantFew(away())
		w.cluster.NATS.Start()
	}
	w.awaitAcknowledged(js)
	w.wantFew(3 * time.Second)
	w.target.wantAll(t, s)
	if is, _ := w.show(followed); is.Attempt != 1 || is.Status != task.Running {
		t.Errorf("attempt %d is %s, want the first one to go on", is.Attempt, is.Status)
	}
	w.must(w.client.Operations().Cancel(w.within(), followed, "enough"))
	w.awaitStatus(followed, task.Failure)
}
