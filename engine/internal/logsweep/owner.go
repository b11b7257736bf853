package logsweep

import (
	"context"
	"math/rand/v2"
	"time"

	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/projection"
)

const (
	// every is the time between two sweeps of a shard, by and large, and longest is the longest one.
	every   = 10 * time.Minute
	longest = every * 6 / 5
	// maxAsked bounds the lives that are looked up in one turn.
	maxAsked = 1000
)

// owner sweeps one shard. The goroutine of the shard's owner calls its methods, and goroutines beside the turns read
// and change the store.
type owner struct {
	*Sweep
	state *projection.Shard
	due   events.Millis // of the next sweep; 0 = one is under way
	page  int           // of the store, to be read next
	read  bool          // all pages were
	found []events.Ref  // lives that have a log, to be looked up
	gone  []events.Ref  // lives that have a log, and no task
}

// AtOwner returns the extension of an owner that sweeps its shard. It is a shard.NewExtension.
func (s *Sweep) AtOwner(state *projection.Shard) shard.Extension {
	if s.of == nil {
		return shard.Extension{}
	}
	o := &owner{Sweep: s, state: state}
	o.rest(events.MillisOf(s.now()), rand.N(every))
	return shard.Extension{
		NextDue: func() events.Millis { return o.due },
		MakeDue: o.begin,
		Prepare: o.prepare,
	}
}

// rest puts the next sweep off.
func (o *owner) rest(now events.Millis, wait time.Duration) {
	o.due, o.found, o.gone = now+events.Millis(wait.Milliseconds())+1, nil, nil
}

// begin begins a sweep that is due. Where the clock was set back, so is the time at which that is.
func (o *owner) begin(now events.Millis) (moved bool) {
	if most := now + events.Millis(longest.Milliseconds()) + 1; o.due > most {
		o.due = most
	}
	if o.due == 0 || now < o.due {
		return false
	}
	o.due, o.page, o.read = 0, 0, false
	return true
}

// prepare does the next step of a sweep: it reads a page, looks up in the state what was found, and at last removes
// what is gone, so that nothing moves from page to page while they are read.
func (o *owner) prepare(now events.Millis) func(context.Context) func() {
	if o.due != 0 {
		return nil
	}
	o.lookUp()
	after := func() { o.rest(now, every*4/5+rand.N(every*2/5)) }
	switch {
	case len(o.found) > 0: // the rest in the next turn
		return func(context.Context) func() { return nil }
	case !o.read:
		return o.readPage(o.page, after)
	case len(o.gone) > 0:
		return o.remove(o.gone, after)
	}
	after()
	return nil
}

// lookUp looks up a part of what was found. A life is gone if no task has it, and if it is not of an entry that the
// state does not have yet: then another owner has taken over the shard.
func (o *owner) lookUp() {
	n := min(len(o.found), maxAsked)
	for _, ref := range o.found[:n] {
		if ref.Entry() <= o.state.Number && !o.state.Lives(ref) {
			o.gone = append(o.gone, ref)
		}
	}
	o.found = o.found[n:]
}

// readPage reads a page of the store. A sweep that cannot read one is put off.
func (o *owner) readPage(page int, off func()) func(context.Context) func() {
	of := uint16(o.state.ID())
	return func(ctx context.Context) func() {
		var found []events.Ref
		next, err := 0, context.Canceled
		o.alone(ctx, func() { found, next, err = o.of.Lives(ctx, of, page) })
		o.tell(ctx, err)
		return func() {
			if err != nil {
				off()
				return
			}
			o.found, o.page, o.read = found, next, next == 0
		}
	}
}

// remove removes logs, until the store fails.
func (o *owner) remove(gone []events.Ref, after func()) func(context.Context) func() {
	of := uint16(o.state.ID())
	return func(ctx context.Context) func() {
		o.alone(ctx, func() {
			for _, ref := range gone {
				if ctx.Err() != nil || !o.forget(ctx, of, ref) {
					break
				}
			}
		})
		return after
	}
}
