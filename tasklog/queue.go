package tasklog

import (
	"time"

	"taskledger/events"
)

const (
	// batchAfter is the time from the first line of a batch until it leaves.
	batchAfter = 200 * time.Millisecond
	// againAfter is the time until a batch of unknown outcome is sent again.
	againAfter = 500 * time.Millisecond
	// awayAfter is the time without an acknowledgement after which the store counts as away.
	awayAfter = 5 * time.Second
	// maxWaitingLines and maxWaitingBytes bound what waits: beyond, the oldest lines go.
	maxWaitingLines = 1000
	maxWaitingBytes = 1 << 20
	// heldLines and heldBytes hold a program where so much waits. They leave room for text that nobody holds: that
	// without an end.
	heldLines = maxWaitingLines - 100
	heldBytes = maxWaitingBytes - 8*MaxLineBytes
)

// queue holds the lines of an attempt on their way to the store, and the time is an argument. The lines that wait are
// always consecutive, so a batch is, too: lines that go leave a hole between two batches.
type queue struct {
	next    uint64        // number of the last line that was added
	latest  events.Millis // its time
	waiting []Line
	bytes   int       // of their text
	since   time.Time // when the first of them began to wait, or one before it that was in no batch of its own
	flush   bool      // whatever waits leaves at once

	batch        Batch     // under way; without lines = none is
	sent         time.Time // when it left first
	again        time.Time // when it is to be sent again
	heard        time.Time // when the store acknowledged something last
	unresponsive bool      // the store is supposed to be away until it acknowledges something

	end    End  // of the log
	kept   kept // what the store has
	lost   uint64
	marked bool // mark was called
	taken  bool // somebody else writes the log
}

// add takes a line. look reports that the time at which something is to be sent may have changed.
func (q *queue) add(now time.Time, level Level, text string) (look bool) {
	q.latest = max(q.latest, events.MillisOf(now))
	whole := q.whole()
	if len(q.waiting) == 0 {
		q.since, look = now, true
	}
	q.next++
	q.waiting = append(q.waiting, Line{q.latest, level, text})
	q.bytes += len(text)
	for len(q.waiting) > maxWaitingLines || q.bytes > maxWaitingBytes {
		q.bytes -= len(q.waiting[0].Text)
		q.waiting = q.waiting[1:]
		q.lost++
	}
	return look || !whole && q.whole()
}

// whole reports whether a batch of what waits would have no room for more.
func (q *queue) whole() bool { return len(q.waiting) >= MaxBatchLines || q.bytes >= MaxBatchBytes }

// hold returns how long a program is held at most before it adds a line.
func (q *queue) hold(now time.Time) time.Duration {
	if len(q.waiting) < heldLines && q.bytes < heldBytes {
		return 0
	}
	return max(awayAfter-q.silence(now), 0)
}

// away reports whether the store has not acknowledged for long what it should have.
func (q *queue) away(now time.Time) bool { return q.silence(now) >= awayAfter }

// silence returns for how long something has been waiting for the store without an acknowledgement of anything.
func (q *queue) silence(now time.Time) time.Duration {
	if q.unresponsive {
		return awayAfter
	}
	from := q.since
	if len(q.batch.Lines) > 0 {
		from = q.sent
	} else if len(q.waiting) == 0 {
		return 0
	}
	if q.heard.After(from) {
		from = q.heard
	}
	return now.Sub(from)
}

// send returns the batch that is to be sent now, without lines = none. It is the same one until it is acknowledged or
// dropped.
func (q *queue) send(now time.Time) Batch {
	at := q.due()
	if at.IsZero() || now.Before(at) {
		return Batch{}
	}
	if len(q.batch.Lines) == 0 {
		n, bytes := 0, 0
		for n < min(len(q.waiting), MaxBatchLines) && bytes+len(q.waiting[n].Text) <= MaxBatchBytes {
			bytes += len(q.waiting[n].Text)
			n++
		}
		q.batch = Batch{First: q.next + 1 - uint64(len(q.waiting)), Lines: q.waiting[:n:n]}
		q.waiting, q.bytes, q.sent = q.waiting[n:], q.bytes-bytes, now
	}
	return q.batch
}

// due returns when send has a batch; the zero time = not before a line is added.
func (q *queue) due() time.Time {
	switch {
	case len(q.batch.Lines) > 0:
		return q.again
	case len(q.waiting) == 0:
		return time.Time{}
	case q.flush || q.whole():
		return q.since
	}
	return q.since.Add(batchAfter)
}

// stored follows the acknowledgement of the batch under way.
func (q *queue) stored(now time.Time, end End) {
	q.kept.add(end, q.batch)
	q.end, q.batch, q.again, q.heard, q.unresponsive = end, Batch{}, time.Time{}, now, false
}

// failed has the batch under way sent again.
func (q *queue) failed(now time.Time) { q.again = now.Add(againAfter) }

// drop gives up the batch under way, which the store refuses.
func (q *queue) drop() {
	q.lost += uint64(len(q.batch.Lines))
	q.batch, q.again = Batch{}, time.Time{}
}

// endMark is the text of the line that mark adds.
const endMark = "the log ends here: what was written last could not be stored"

// untold reports whether the lines behind the end of the log are in no gap.
func (q *queue) untold() bool { return !q.taken && q.next > q.end.Line }

// mark adds a last line, so that those which were lost before it are in a gap.
func (q *queue) mark(now time.Time) {
	q.marked = true
	q.add(now, Error, endMark)
}

// giveUp leaves of what waits only the batch under way, whose outcome may be unknown, and the last line.
func (q *queue) giveUp(now time.Time) {
	q.flush = true
	if len(q.batch.Lines) > 0 {
		q.again = now
	}
	if !q.marked && q.untold() {
		q.waiting, q.bytes = nil, 0
		q.mark(now)
	}
}

// left returns the number of lines that are not stored yet.
func (q *queue) left() uint64 { return uint64(len(q.batch.Lines) + len(q.waiting)) }
