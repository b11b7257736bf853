package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"taskledger/events"
	"taskledger/store"
)

const (
	// maxHeld bounds the events of a life that are held at a time to be yielded oldest first.
	maxHeld = 256
	// maxBetween bounds the entries without an event of the task that are read in sequence for the next event: about
	// as many as one read of the store returns.
	maxBetween = 16
)

// after is the place of an event that was yielded; the zero value is the place before the first.
type after struct {
	ref events.Ref
	seq uint64
}

// forth yields the events of a life from the one after at on, up to the last of known, oldest first. known names some
// of the events, in order; it ends with the last one.
//
// An event names the one before it, and none names the next. So events that stand close together are read with the
// entries between them. Where the next one is farther away, forth looks for an event about as far ahead as wanted ones
// reach, and walks back from there: each event is then read once, and no more than maxHeld are held at a time. Where
// they stand so unevenly that none is found, it walks back from the next event that is known, and notes every
// maxHeld-th on the way: each event is then read twice. wanted bounds the events that are taken; 0 = all.
//
// If the beginning cannot be read, forth yields the rest and then the error; if whole is set, the error alone.
func (r *Reader) forth(
	ctx context.Context,
	shard int,
	id events.TaskID,
	at after,
	known []events.Ref,
	wanted uint64,
	whole bool,
) iter.Seq2[*events.Event, error] {
	return func(yield func(*events.Event, error) bool) {
		m := &march{
			reader: r,
			shard:  shard,
			id:     id,
			at:     at,
			known:  known,
			whole:  whole,
			wanted: cmp.Or(wanted, math.MaxUint64),
			yield:  func(ev *events.Event) bool { return yield(ev, nil) },
		}
		if err := m.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// march goes forward through a life.
type march struct {
	reader *Reader
	shard  int
	id     events.TaskID
	at     after
	known  []events.Ref
	whole  bool
	wanted uint64 // how many events are taken at most
	gap    uint64 // how many events follow, up to the next known one, where these are too many to be held
	cut    error  // why there is nothing before the first event that was yielded; nil = there is, or it is the first of the life
	yield  func(*events.Event) bool
}

func (m *march) run(ctx context.Context) error {
	for len(m.known) > 0 {
		if m.known[0] <= m.at.ref {
			m.known = m.known[1:]
			continue
		}
		few, err := m.few(ctx)
		if err != nil {
			return err
		}
		if few {
			continue
		}
		from := m.at
		if err := m.ahead(ctx); err != nil {
			return err
		}
		if m.at != from {
			continue
		}
		found, err := m.near(ctx)
		if err == nil && !found {
			err = m.note(ctx)
		}
		if err != nil {
			return err
		}
	}
	return m.cut
}

// few walks back from the next known event and yields what lies before it, and the event itself, unless these are too
// many to be held.
func (m *march) few(ctx context.Context) (bool, error) {
	var held []*events.Event
	for ev, err := range m.reader.back(ctx, m.shard, m.id, m.known[0]) {
		if err != nil {
			if len(held) == 0 && len(m.known) > 1 {
				m.known = m.known[1:] // a later one may be readable
				return true, m.begin(ctx, err, true)
			}
			if err = m.begin(ctx, err, len(held) > 0); err != nil {
				return false, err
			}
			break
		}
		if len(held) == 0 {
			m.gap = ev.Seq - m.at.seq
		}
		if ev.Seq-m.at.seq > maxHeld || len(held) == maxHeld {
			return false, nil
		}
		held = append(held, ev)
		if ev.Prev <= m.at.ref {
			if ev.Prev != m.at.ref {
				return false, m.unlinked(ev)
			}
			break
		}
	}
	for _, ev := range slices.Backward(held) {
		if err := m.tell(ev); err != nil {
			return false, err
		}
	}
	return true, nil
}

// begin takes the error that ended a walk back to the first event for the beginning of what can be read, if anything
// can.
func (m *march) begin(ctx context.Context, err error, some bool) error {
	if m.whole || !some || m.at.ref != 0 || ctx.Err() != nil {
		return err
	}
	m.cut = err
	return nil
}

// ahead yields the events that follow, up to the next known one, until one is too far away.
func (m *march) ahead(ctx context.Context) error {
	if m.at.ref == 0 {
		return nil // nothing tells where the life begins
	}
	between := 0
	for rec, err := range m.reader.Read(ctx, m.shard, m.at.ref.Entry()) {
		switch {
		case errors.Is(err, store.ErrTrimmed):
			return nil // the walk back says what is missing
		case err != nil:
			return err
		}
		from := m.at
		if err := m.take(rec); err != nil {
			return err
		}
		if between++; m.at != from {
			between = 0
		}
		if between > maxBetween || rec.Number >= m.known[0].Entry() {
			return nil
		}
	}
	return nil
}

// take yields the events of an entry that follow, up to the next known one.
func (m *march) take(rec store.Record) error {
	all, err := eventsIn(rec, m.id)
	if err != nil {
		return err
	}
	for _, ev := range all {
		switch ref := ev.Position.Ref; {
		case ref <= m.at.ref || ref > m.known[0]:
			continue
		case ev.Prev != m.at.ref:
			return m.unlinked(ev)
		}
		if err := m.tell(ev); err != nil {
			return err
		}
	}
	return nil
}

func (m *march) tell(ev *events.Event) error {
	m.at, m.wanted = after{ev.Position.Ref, ev.Seq}, max(m.wanted-1, 1)
	if !m.yield(ev) {
		return errStopped
	}
	return nil
}

// near makes an event known that stands about so far ahead as the wanted ones reach, if they stand evenly. It gives up
// where finding all that are wanted so, or this one, would take more requests than walking back does.
func (m *march) near(ctx context.Context) (bool, error) {
	if m.at.ref == 0 || m.gap <= maxHeld {
		return false, nil // nothing tells where the life begins, or how many events follow
	}
	from, end := m.at.ref.Entry(), m.known[0].Entry()
	wanted := min(m.wanted, m.gap)
	step := min(wanted, maxHeld*3/4) // room for events that stand closer there
	apart := (end-from)/m.gap + 1
	if (wanted+step-1)/step*apart/maxBetween >= m.gap {
		return false, nil
	}
	from += (end - from) * step / m.gap
	for rec, err := range m.reader.Read(ctx, m.shard, from) {
		switch {
		case err != nil:
			return false, unlessGone(err) // the walk back may not need it, or says what is missing
		case rec.Number >= end || rec.Number-from > maxBetween*min(apart, m.gap):
			return false, nil
		}
		all, err := eventsIn(rec, m.id)
		if err != nil {
			return false, unlessGone(err)
		}
		if len(all) > 0 && all[0].Position.Ref > m.at.ref {
			m.known = slices.Concat([]events.Ref{all[0].Position.Ref}, m.known)
			return true, nil
		}
	}
	return false, nil
}

// note walks back from the next known event to the last one that was yielded, and makes every maxHeld-th on its way
// known.
func (m *march) note(ctx context.Context) error {
	var met []events.Ref
	var first *events.Event
	n, cut := 0, false
	for ev, err := range m.reader.back(ctx, m.shard, m.id, m.known[0]) {
		if err != nil {
			if err = m.begin(ctx, err, first != nil); err != nil {
				return err
			}
			m.at, cut = after{first.Prev, first.Seq - 1}, true
			break
		}
		if first = ev; n > 0 && n%maxHeld == 0 {
			met = append(met, ev.Position.Ref)
		}
		if n++; ev.Prev <= m.at.ref {
			break
		}
	}
	if len(met) == 0 && !cut {
		return fmt.Errorf("%w: the events up to %s are not numbered from 1 on without a gap",
			events.ErrDamaged, m.position(m.known[0]))
	}
	slices.Reverse(met)
	m.known = slices.Concat(met, m.known)
	return nil
}

func (m *march) unlinked(ev *events.Event) error {
	return fmt.Errorf("%w: event %s does not follow event %s", events.ErrDamaged, ev.Position, m.position(m.at.ref))
}

func (m *march) position(ref events.Ref) events.Position {
	return events.Position{Shard: uint16(m.shard), Ref: ref}
}
