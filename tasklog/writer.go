package tasklog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"taskledger/store"
)

const (
	// storeWithin bounds a call of the store: less than closeWithin, so that one without an answer is made again.
	storeWithin = 2 * time.Second
	// closeWithin is the time that Run has, after Close, to store what is left; closeAway where the store is away.
	closeWithin = 5 * time.Second
	closeAway   = time.Second
)

// Writer writes the log of one attempt. Its outputs and handlers may be used before Run begins and from several
// goroutines. Nothing is asked of the store before the first line.
type Writer struct {
	to Store
	of Attempt

	mu      sync.Mutex
	queue   queue
	outputs []*output          // those with text that has no end yet
	freed   bool               // HoldNobody was called
	closed  bool               // Close was called
	until   time.Time          // when Run has to end after Close
	ended   bool               // Run has returned: lines are dropped
	err     error              // what keeps lines from being stored for good, the first such thing
	cancel  context.CancelFunc // ends Run; nil while it does not run
	ending  *time.Timer        // calls cancel; nil before Close, and while Run does not run
	room    chan struct{}      // closed, and made anew, where those that are held have to look again

	look chan struct{} // has a value where Run has to look again
}

// NewWriter returns a writer, which starts nothing. There must be no other writer of the attempt, ever. The error
// names the field by which of names no attempt.
func NewWriter(to Store, of Attempt) (*Writer, error) {
	if err := of.Check(); err != nil {
		return nil, fmt.Errorf("log of an attempt: %w", err)
	}
	return &Writer{to: to, of: of, room: make(chan struct{}), look: make(chan struct{}, 1)}, nil
}

// Skip numbers n lines that were dropped before there was a writer, so that readers see the gap. It counts them as
// dropped, and must be called before the first line.
func (w *Writer) Skip(n uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue.next += n
	w.queue.lost += n
}

// SupposeAway has the store count as away until it acknowledges something, where that is known before the first line.
func (w *Writer) SupposeAway() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue.unresponsive = true
}

// Output returns what makes lines of a level of the text that is written to it, for one goroutine at a time. LF or
// CR LF ends a line; text without an end becomes a line after a second, and when the writer is closed. What is no
// UTF-8 is replaced.
//
// Where held is true, as for a program whose pipe fills up, Write returns when there is room for the lines, after 5
// s at most and at once while the store is away or after HoldNobody. Otherwise it never waits. The error of Write is
// io.ErrClosedPipe after Close, else nil, whatever becomes of the lines.
func (w *Writer) Output(level Level, held bool) io.Writer {
	return &output{w: w, level: level, held: held}
}

// Handler returns a handler that makes a line of each record of level Info and above, and several where its message
// has more lines: of level Info below slog.LevelError, else Error. It never waits.
func (w *Writer) Handler() slog.Handler { return newHandler(w) }

// Dropped returns how many lines have been dropped so far. Each of them is in a gap for readers as soon as a later
// line is stored.
func (w *Writer) Dropped() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.lost
}

// Run stores lines until Close is called and nothing is left, at most for 5 s after Close, or 1 s where the store
// is away then, and returns nil if it kept every line that no gap shows. An error says how many lines it left, and
// wraps ErrTaken where somebody else writes the log: Run returns at once then. It ends with ctx, too. Once it has
// returned, nothing that is written is kept, and nobody waits: see Untold. It must be called once.
func (w *Writer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	w.cancel = cancel
	w.limit()
	w.mu.Unlock()
	var failed error // the latest call of the store, if it failed
	for ctx.Err() == nil {
		b, wait, done := w.next(time.Now())
		if done {
			break
		}
		if len(b.Lines) > 0 {
			if failed = w.deliver(ctx, b); errors.Is(failed, ErrTaken) {
				break
			}
			continue
		}
		w.await(ctx, wait)
	}
	return w.end(failed)
}

// Untold reports, once Run has returned or where it is never called, whether the last lines are missing in the log
// without a gap that tells it. Mark makes one.
func (w *Writer) Untold() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.untold()
}

// Mark stores a last line of level Error, which says that those before it are missing. It must not be called before
// Run has returned, unless that is never called. After an error it may be called again, in vain where that wraps
// ErrTaken or store.ErrRefused.
func (w *Writer) Mark(ctx context.Context) error {
	w.mu.Lock()
	w.ended = true
	w.queue.giveUp(time.Now())
	w.mu.Unlock()
	for {
		w.mu.Lock()
		b := w.queue.send(time.Now())
		w.mu.Unlock()
		if len(b.Lines) == 0 {
			return nil
		}
		if err := w.deliver(ctx, b); err != nil {
			return fmt.Errorf("mark the end of the log of attempt %d: %w", w.of.Number, err)
		}
	}
}

// next returns the batch to send now, or the time until it has to be asked for again; 0 = not before look has a
// value.
func (w *Writer) next(now time.Time) (b Batch, wait time.Duration, done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var next time.Time
	w.outputs = slices.DeleteFunc(w.outputs, func(o *output) bool {
		if at := o.text.due(); !at.IsZero() && !at.After(now) {
			o.flush(now, false)
		}
		at := o.text.due()
		next = sooner(next, at)
		o.listed = !at.IsZero()
		return !o.listed
	})
	if w.closed && w.queue.left() == 0 && w.queue.untold() && !w.queue.marked {
		w.queue.mark(now)
	}
	if b = w.queue.send(now); len(b.Lines) > 0 {
		return b, 0, false
	}
	if next = sooner(next, w.queue.due()); !next.IsZero() {
		wait = max(next.Sub(now), 1)
	}
	return b, wait, w.closed && w.queue.left() == 0
}

// sooner returns the earlier of two times, of which the zero time is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (w *Writer) await(ctx context.Context, wait time.Duration) {
	var expired <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case <-w.look:
	case <-expired:
	case <-ctx.Done():
	}
}

// deliver makes room for a batch and stores it. It returns the error of the store, and the queue knows by then what
// that means.
func (w *Writer) deliver(ctx context.Context, b Batch) error {
	ctx, stop := context.WithTimeout(ctx, storeWithin)
	defer stop()
	w.mu.Lock()
	after, upTo := w.queue.end, w.queue.kept.excess(b)
	w.mu.Unlock()
	end, err := w.store(ctx, after, upTo, b)
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	switch {
	case err == nil:
		w.queue.kept.trimmed(upTo)
		w.queue.stored(now, end)
	case errors.Is(err, store.ErrRefused):
		w.queue.drop()
		if w.err == nil {
			w.err = err
		}
	case errors.Is(err, ErrTaken):
		w.queue.taken = true
	default:
		w.queue.failed(now)
	}
	w.release()
	return err
}

func (w *Writer) store(ctx context.Context, after, upTo End, b Batch) (end End, err error) {
	if after == (End{}) && w.of.Number > MaxAttempts {
		err = w.to.Forget(ctx, w.of.Shard, w.of.Life, w.of.Number-MaxAttempts+1)
	}
	if err == nil && upTo != (End{}) {
		err = w.to.Trim(ctx, w.of, upTo)
	}
	if err != nil {
		return End{}, err
	}
	return w.to.Append(ctx, w.of, after, b)
}

// release has those look again that are held.
func (w *Writer) release() {
	close(w.room)
	w.room = make(chan struct{})
}

// end takes no more lines, and says what has become of those that are left.
func (w *Writer) end(failed error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.outputs {
		o.flush(time.Now(), true)
	}
	w.ended, w.outputs = true, nil
	w.release()
	if w.ending != nil {
		w.ending.Stop()
	}
	err, n := w.err, w.queue.left()
	if n > 0 && w.queue.marked {
		n--
	}
	if n > 0 {
		w.queue.lost += n
		err = errors.Join(err, fmt.Errorf("%d lines are left: %w", n, cmp.Or(failed, errLate)))
	}
	if err != nil {
		return fmt.Errorf("log of attempt %d of life %d of shard %d: %w", w.of.Number, w.of.Life, w.of.Shard, err)
	}
	return nil
}

var errLate = errors.New("the time to store them is over")

// HoldNobody lets whoever is held go on, and holds nobody from then on: the oldest lines that wait go instead. It is
// for a program that has to end.
func (w *Writer) HoldNobody() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.freed = true
	w.release()
}

// Close takes no more lines, and has Run store what is left at once and then return. It waits for nothing, and may be
// called again.
func (w *Writer) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	now := time.Now()
	for _, o := range w.outputs {
		o.flush(now, true)
	}
	w.closed, w.queue.flush = true, true
	if w.ended {
		return
	}
	within := closeWithin
	if w.queue.away(now) {
		within = closeAway
	}
	w.until = now.Add(within)
	w.limit()
	w.release()
	w.wake()
}

// limit has Run end in time, if it runs and Close was called.
func (w *Writer) limit() {
	if w.closed && w.cancel != nil {
		w.ending = time.AfterFunc(time.Until(w.until), w.cancel)
	}
}

// add takes a line.
func (w *Writer) add(now time.Time, level Level, line string) {
	if w.ended {
		w.queue.lost++
		return
	}
	if w.queue.add(now, level, line) {
		w.wake()
	}
}

func (w *Writer) wake() {
	select {
	case w.look <- struct{}{}:
	default:
	}
}

// output implements Writer.Output. The writer's mutex guards it.
type output struct {
	w      *Writer
	level  Level
	held   bool
	text   splitter
	listed bool // among the writer's outputs
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	w, n := o.w, len(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(p) > 0 {
		now := time.Now()
		if o.held {
			now = w.hold(now)
		}
		if w.closed {
			return n - len(p), io.ErrClosedPipe
		}
		rest, line, whole := o.text.take(now, p)
		if p = rest; whole {
			w.add(now, o.level, line)
		}
	}
	if !o.text.due().IsZero() {
		if !o.listed {
			o.listed, w.outputs = true, append(w.outputs, o)
		}
		w.wake()
	}
	return n, nil
}

// flush makes a line of the text that has no end.
func (o *output) flush(now time.Time, last bool) {
	if line, is := o.text.flush(now, last); is {
		o.w.add(now, o.level, line)
	}
}

// hold returns when a program may add a line, without the lock meanwhile.
func (w *Writer) hold(now time.Time) time.Time {
	for !w.closed && !w.ended && !w.freed {
		wait := w.queue.hold(now)
		if wait <= 0 {
			break
		}
		room := w.room
		w.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-room:
		case <-timer.C:
		}
		timer.Stop()
		w.mu.Lock()
		now = time.Now()
	}
	return now
}
