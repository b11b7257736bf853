package work

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"taskledger/work/internal/threads"
	"taskledger/work/workledger"
)

// current tells a stream for which attempt it runs.
type current[P any] struct {
	params P
	plan   *PartitionPlan
	place  int // of the partition
	rules  []Rule
	info   Info
	ledger Ledger
	record workledger.Stream
	log    *slog.Logger
	grace  time.Duration
	tell   func(processed int64)
}

// arrival is a change that has come from its source.
type arrival[C any] struct {
	Change[C]
	unread error // why it could not be read
	at     string
	place  uint64
	tries  int64
}

// streamRun holds a run of a stream in an attempt.
type streamRun[P, C any] struct {
	*flowOf[P, C]
	current[P]
	position workledger.Position
	mover    *mover
	later    *threads.Later[*arrival[C]]
	tally    tally
	admitted int64  // changes that have come
	last     string // the token that came last
}

// run implements flow: it processes what the source has.
func (s *flowOf[P, C]) run(ctx context.Context, of current[P]) error {
	position, err := of.record.Position(ctx)
	if err != nil {
		return ended(ctx, fmt.Errorf("asking where stream %s begins: %w", of.plan.ID, err))
	}
	r := &streamRun[P, C]{
		flowOf:   s,
		current:  of,
		position: position,
		mover:    newMover(of.record, position),
		later:    threads.NewLater[*arrival[C]](),
		last:     position.Token,
	}
	r.mover.whole = s.Imprecise
	r.mover.simulates = of.plan.Mode != Full && !of.plan.MovesToken && !s.Imprecise
	r.tally.tells(of.tell)
	if r.until() != "" && r.until() == position.Token { // nothing was simulated
		return nil
	}
	return r.process(ctx)
}

// until returns the token of the last change of the run, "" if none is the last one.
func (r *streamRun[P, C]) until() string {
	if r.Imprecise {
		return ""
	}
	return r.position.Until
}

// process processes the changes of the run, and records how far it has come.
func (r *streamRun[P, C]) process(ctx context.Context) error {
	defer r.tally.watch()()
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	stopping, stopped := make(chan struct{}), make(chan struct{})
	var broken error
	go func() {
		defer close(stopped)
		r.mover.run(ctx, stopping, func(err error) {
			broken = err
			fail(err)
		})
	}()
	err := threads.Run(running, threads.Config[*arrival[C]]{
		Name:      "the iterator of stream " + r.plan.ID,
		Threads:   int(r.plan.Threads),
		Items:     r.arrivals,
		Admit:     r.admit,
		Key:       func(a *arrival[C]) string { return a.Key },
		Room:      r.mover.room,
		Process:   r.change,
		Later:     r.later,
		Grace:     r.grace,
		Abandoned: &abandoned,
	})
	close(stopping)
	<-stopped
	if broken != nil {
		return ended(ctx, broken)
	}
	finished := r.mover.finish(ctx, err == nil)
	switch {
	case err != nil && finished != nil:
		const say = "the last move of the attempt was not taken: what it has processed behind its token comes again"
		r.log.InfoContext(ctx, say, "stream", r.plan.ID, "error", finished)
	case err == nil && finished != nil:
		return ended(ctx, finished)
	}
	if err != nil {
		return r.failure(err)
	}
	return nil
}

// failure names the stream in an error of its source, as bucketRun does.
func (r *streamRun[P, C]) failure(err error) error {
	switch err.(type) {
	case *threads.IteratorError, *threads.PanicError:
		return &ItemsError{
			Partition: r.plan.ID,
			Bucket:    r.info.Bucket,
			Err:       err,
		}
	}
	return err
}

// arrivals yields what Changes does.
func (r *streamRun[P, C]) arrivals(ctx context.Context) iter.Seq2[*arrival[C], error] {
	return func(yield func(*arrival[C], error) bool) {
		changes := r.Changes(&scope{Context: ctx, info: r.info}, r.params, r.position.Token)
		changes(func(c Change[C], err error) bool {
			if err != nil && (c.Token == "" || c.Key == "") {
				return yield(nil, err)
			}
			return yield(&arrival[C]{
				Change: c,
				unread: err,
				at:     c.Token,
			}, nil)
		})
	}
}

// change processes a change and says what comes after it.
func (r *streamRun[P, C]) change(ctx context.Context, it *threads.Item[*arrival[C]]) (v threads.Verdict) {
	a := it.Value
	switch {
	case r.plan.Mode == DryRun && a.unread == nil:
		r.end(a, outcome{of: changeDone})
		return v
	case r.plan.Mode == DryRun:
		return r.fail(a, itemError(a.Key, a.unread))
	case r.mover.holds(a.Key) && r.plan.Mode == Full:
		return r.hold(it, workledger.Hold{Append: true}, outcome{of: changeSkipped})
	case r.mover.holds(a.Key):
		r.end(a, outcome{of: changeSkipped})
		return v
	}
	a.tries++
	asks := &permits{
		ledger: r.ledger,
		ask: Ask{
			Partition: r.place,
			Bucket:    r.info.Bucket.Number,
			Item:      changeHash(r.info.Bucket.Number, a.Key, a.at),
			Mode:      r.plan.Mode,
		},
		partition:  r.plan.ID,
		thresholds: r.plan.Thresholds,
	}
	err := a.unread
	if err == nil {
		err = r.call(&scope{Context: ctx, info: r.info, item: asks}, a.Change)
	}
	denied := asks.denial()
	skip, skips := skipped(err)
	switch {
	case denied != nil:
		v.Stop = denied
	case err == nil:
		r.end(a, outcome{of: changeDone})
	case ctx.Err() != nil: // nobody knows what else it would have come to
		v.Stop = context.Cause(ctx)
	case skips:
		r.end(a, outcome{of: changeSkipped})
		r.log.DebugContext(ctx, "change skipped", "key", a.Key, "at", a.at, "reason", skip.reason)
	default:
		return r.failed(ctx, asks, it, err)
	}
	return v
}

// call calls Process and makes an error of its panic.
func (s *flowOf[P, C]) call(ctx context.Context, c Change[C]) (err error) {
	threads.Watch("the function of the change", func() { err = s.Process(ctx, c) }, func(failure error) { err = failure })
	return err
}

// failed does what the rules say of a change that failed.
func (r *streamRun[P, C]) failed(
	ctx context.Context, asks *permits, it *threads.Item[*arrival[C]], err error,
) (v threads.Verdict) {
	a := it.Value
	e := itemError(a.Key, err)
	d := decide(r.rules, e.Code, a.tries)
	stop := &StopError{
		Partition: r.plan.ID,
		Bucket:    r.info.Bucket.Number,
		Rule:      d.place,
		Item:      e,
		At:        a.at,
		Err:       err,
	}
	switch {
	case d.place < 0:
		v.Stop = stop
		return v
	case d.React == Ignore:
		r.end(a, outcome{of: changeSkipped})
		return v
	case d.React == Retry:
		v.Again, v.After = true, d.backoff(d.repetition)
		return v
	case d.React == Stop:
		passes, denied := passes(ctx, asks, d, e)
		if denied != nil {
			v.Stop = denied
			return v
		}
		if !passes {
			v.Stop = stop
			return v
		}
	case d.holds() && r.plan.Mode == Full:
		hold := workledger.Hold{
			Parked: d.React == Park,
			Passed: d.Pass,
		}
		hold.Change.Code, hold.Change.Message = e.Code, e.Message
		return r.hold(it, hold, outcome{of: changeFailed, error: &e})
	}
	return r.fail(a, e)
}

// fail counts a change as failed.
func (r *streamRun[P, C]) fail(a *arrival[C], e ItemError) threads.Verdict {
	r.end(a, outcome{of: changeFailed, error: &e})
	return threads.Verdict{}
}

// hold wants a change to be held, and sets it aside until that is recorded.
func (r *streamRun[P, C]) hold(it *threads.Item[*arrival[C]], h workledger.Hold, o outcome) threads.Verdict {
	a := it.Value
	held := heldChange[C]{
		Key:   a.Key,
		Token: a.Token,
		Value: a.Value,
	}
	if a.unread != nil {
		e := itemError(a.Key, a.unread)
		held.Unread, held.Code = e.Message, e.Code
	}
	data, err := encodeHeld(held)
	if err != nil {
		return threads.Verdict{Stop: fmt.Errorf("change of %.64q at %.64q: %w", a.Key, a.at, err)}
	}
	h.Key, h.Change.Data = a.Key, data
	if !r.Imprecise { // others may have its token
		h.Change.At = a.at
	}
	r.mover.want(&wanted{
		hold:    h,
		place:   a.place,
		outcome: o,
		tell: func(v threads.Verdict) {
			if !v.Again {
				r.count(o)
			}
			r.later.Tell(it, v)
		},
	})
	return threads.Verdict{Later: true}
}

// end tells what became of a change.
func (r *streamRun[P, C]) end(a *arrival[C], o outcome) {
	r.count(o)
	r.mover.end(a.place, o)
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
func changeHash(bucket int64, key, at string) uint64 {
	b := binary.BigEndian.AppendUint64(nil, uint64(bucket))
	b = binary.BigEndian.AppendUint64(append(b, 'c'), uint64(len(key)))
	sum := sha256.Sum256(append(append(b, key...), at...))
	return binary.BigEndian.Uint64(sum[:])
}
