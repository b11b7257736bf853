package work

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	"taskledger/work/internal/threads"
	"taskledger/work/workledger"
)

// streamRun holds a run of a stream in an attempt.
type streamRun[P, C any] struct {
	*flowOf[P, C]
	current[P]
	position workledger.Position
	mover    *mover
	later    *threads.Later[*arrival[C]]
	tally    tally
	names    vagueNames
}

// source tells a run how its changes come.
type source[C any] struct {
	items func(context.Context) iter.Seq2[*arrival[C], error]
	admit func(*arrival[C]) (threads.Admission, error)
	room  func() bool // reports whether another change may come; nil = it may
	ahead int
	// behind names the position at which the source is, for errors that have none.
	behind func() string
}

// placedError is an error of a source that names its position.
type placedError struct{ error }

// Unwrap returns the cause.
func (e *placedError) Unwrap() error { return e.error }

// place names the position in an error of the source, unless it has one.
func (s *source[C]) place(err error) error {
	is, iterator := err.(*threads.IteratorError)
	if _, placed := errors.AsType[*placedError](err); placed || !iterator {
		return err
	}
	return &threads.IteratorError{Err: fmt.Errorf("%s: %w", s.behind(), is.Err)}
}

// process processes the changes of the run, and records how far it has come.
func (r *streamRun[P, C]) process(ctx context.Context, from source[C]) error {
	defer r.tally.watch()()
	r.mover.wake = r.later.Wake
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var broken error
	stopping, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		broken = r.mover.run(ctx, stopping)
		fail(broken)
	}()
	stop := sync.OnceFunc(func() {
		close(stopping)
		<-stopped
	})
	defer stop() // also when a function of the stream ends this goroutine
	err := threads.Run(running, threads.Config[*arrival[C]]{
		Name:      "the iterator of stream " + r.plan.ID,
		Threads:   int(r.plan.Threads),
		Items:     from.items,
		Admit:     from.admit,
		Key:       func(a *arrival[C]) string { return a.key },
		Room:      func() bool { return r.mover.room() && (from.room == nil || from.room()) },
		Ahead:     from.ahead,
		Process:   r.arrival,
		Later:     r.later,
		Grace:     r.grace,
		Abandoned: &abandoned,
	})
	stop()
	if broken != nil {
		return ended(ctx, broken)
	}
	return r.failure(from.place(err))
}

// finish records how far the run has come, once nothing is processed any more, and returns what the run returns.
func (r *streamRun[P, C]) finish(ctx context.Context, err error) error {
	finished := r.mover.finish(ctx, err == nil, err != nil && ctx.Err() == nil)
	switch {
	case finished == nil:
		return err
	case err == nil:
		return ended(ctx, finished)
	}
	const say = "the last move of the attempt was not taken: what it has processed behind its token comes again"
	r.log.InfoContext(ctx, say, "stream", r.plan.ID, "error", finished)
	return err
}

// failure names the stream in an error of its source, as bucketRun does.
func (r *streamRun[P, C]) failure(err error) error {
	switch err.(type) {
	case *threads.IteratorError, *threads.PanicError:
		return &ItemsError{
			Partition: r.plan.ID,
			Stream:    true,
			Bucket:    r.info.Bucket,
			Err:       err,
		}
	}
	return err
}

// arrival processes changes of a key that have come, and says what comes after them.
func (r *streamRun[P, C]) arrival(ctx context.Context, it *threads.Item[*arrival[C]]) threads.Verdict {
	a := it.Value
	for {
		o, v := r.change(ctx, it, a.current())
		switch {
		case v != threads.Verdict{}:
			return v
		case r.ended(it, o):
			return threads.Verdict{Later: a.of != nil}
		case ctx.Err() != nil:
			return threads.Verdict{Stop: context.Cause(ctx)}
		}
	}
}

// ended notes what became of the current part of an arrival, and reports whether it was the last one. That of a message
// keeps its key until the message is acknowledged.
func (r *streamRun[P, C]) ended(it *threads.Item[*arrival[C]], o outcome) (last bool) {
	a := it.Value
	r.count(o)
	last = a.end()
	if a.of == nil {
		r.mover.end(a.place, o)
		return last
	}
	a.of.add(o)
	if last {
		a.of.end(func() { r.later.Tell(it, threads.Verdict{}) })
	}
	return last
}

// change processes a change. If the verdict is zero, the change has ended with the outcome.
func (r *streamRun[P, C]) change(
	ctx context.Context, it *threads.Item[*arrival[C]], p *part[C],
) (o outcome, v threads.Verdict) {
	switch held := r.mover.holds(p.Key); {
	case r.plan.Mode == DryRun && p.unread == nil:
		return outcome{of: changeDone}, v
	case r.plan.Mode == DryRun:
		return failed(itemError(p.Key, p.unread)), v
	case held && r.plan.Mode == Full:
		return o, r.hold(it, p, workledger.Hold{Append: true}, outcome{of: changeSkipped})
	case held:
		return outcome{of: changeSkipped}, v
	}
	it.Value.tries++
	asks := &permits{
		ledger: r.ledger,
		ask: Ask{
			Partition: r.place,
			Bucket:    r.info.Bucket.Number,
			Item:      changeHash(r.info.Bucket.Number, p.Key, p.name()),
			Mode:      r.plan.Mode,
		},
		partition:  r.plan.ID,
		thresholds: r.plan.Thresholds,
	}
	err := p.unread
	if err == nil {
		err = r.call(&scope{
			Context: ctx,
			info:    r.info,
			item:    asks,
			fence:   r.mover.fenced(),
		}, p.Change)
	}
	denied := asks.denial()
	skip, skips := skipped(err)
	switch {
	case denied != nil:
		v.Stop = denied
	case err == nil:
		o.of = changeDone
	case ctx.Err() != nil: // nobody knows what else it would have come to
		v.Stop = context.Cause(ctx)
	case skips:
		o.of = changeSkipped
		r.log.DebugContext(ctx, "change skipped", "key", p.Key, "at", p.at, "reason", skip.reason)
	default:
		return r.failed(ctx, asks, it, err)
	}
	return o, v
}

// call calls Process and makes an error of its panic.
func (s *flowOf[P, C]) call(ctx context.Context, c Change[C]) (err error) {
	threads.Watch("the function of the change", func() { err = s.Process(ctx, c) }, func(failure error) { err = failure })
	return err
}

// failed does what the rules say of a change that failed.
func (r *streamRun[P, C]) failed(
	ctx context.Context, asks *permits, it *threads.Item[*arrival[C]], err error,
) (o outcome, v threads.Verdict) {
	p := it.Value.current()
	e := itemError(p.Key, err)
	d := decide(r.rules, e.Code, it.Value.tries)
	if d.place < 0 {
		d.React = Stop
		if p.whole != nil && p.unread != nil && len(r.plan.Thresholds) == 0 { // no permit covers what a hold does
			d.React = Park
		}
	}
	stop := &StopError{
		Partition: r.plan.ID,
		Bucket:    r.info.Bucket.Number,
		Rule:      d.place,
		Item:      e,
		At:        p.at,
		Err:       err,
	}
	switch {
	case d.React == Ignore:
		return outcome{of: changeSkipped}, v
	case d.React == Retry:
		v.Again, v.After = true, d.backoff(d.repetition)
		return o, v
	case d.React == Stop && d.place < 0:
		v.Stop = stop
		return o, v
	case d.React == Stop:
		passes, denied := passes(ctx, asks, d, e)
		if !passes {
			stop.counted = d.Times > 1
			v.Stop = cmp.Or[error](denied, stop)
			return o, v
		}
	case d.holds() && r.plan.Mode == Full:
		hold := workledger.Hold{
			Parked: d.React == Park,
			Passed: d.Pass,
		}
		hold.Change.Code, hold.Change.Message = e.Code, e.Message
		return o, r.hold(it, p, hold, failed(e))
	}
	return failed(e), v
}

// failed returns the outcome of a change that failed.
func failed(e ItemError) outcome { return outcome{of: changeFailed, error: &e} }

// hold wants a change to be held, and sets its arrival aside until that is recorded.
func (r *streamRun[P, C]) hold(
	it *threads.Item[*arrival[C]], p *part[C], h workledger.Hold, o outcome,
) threads.Verdict {
	data, err := holdOf(p)
	if err != nil {
		return threads.Verdict{Stop: fmt.Errorf("change of %.64q at %.64q: %w", p.Key, p.at, err)}
	}
	h.Key, h.Change.Data = p.Key, data
	if h.Change.At = p.name(); r.Imprecise { // others may have its token
		h.Change.At = r.vagueName(p, data)
	}
	a := it.Value
	r.mover.want(&wanted{
		hold:    h,
		place:   a.place,
		outcome: o,
		freed:   func() { r.later.Tell(it, threads.Verdict{Again: true}) },
		recorded: func() {
			if a.of == nil {
				r.count(o)
				r.later.Tell(it, threads.Verdict{})
			} else if !r.ended(it, o) {
				r.later.Tell(it, threads.Verdict{Again: true})
			}
		},
	})
	return threads.Verdict{Later: true}
}

// count counts an outcome for those who watch the attempt.
func (r *streamRun[P, C]) count(o outcome) {
	switch o.of {
	case changeDone:
		r.tally.done()
	case changeFailed:
		r.tally.failed(*o.error)
	case changeSkipped:
		r.tally.skipped()
	}
}

// changeHash returns the number that a change has in an Ask.
func changeHash(bucket int64, key, name string) uint64 {
	b := binary.BigEndian.AppendUint64(nil, uint64(bucket))
	b = binary.BigEndian.AppendUint64(append(b, 'c'), uint64(len(key)))
	sum := sha256.Sum256(append(append(b, key...), name...))
	return binary.BigEndian.Uint64(sum[:])
}
