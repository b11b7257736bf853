package events

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"taskledger/internal/wire"
)

// What the smallest origin and the smallest event take encoded: Decode makes room for no more than fit.
const (
	leastOriginBytes = 8
	leastEventBytes  = 12
)

// Decode reads a stored entry and checks it against its own hash; that Prev is the hash of the entry before is for the
// caller to check. It copies what it keeps. Errors wrap ErrDamaged.
func Decode(data []byte) (*Entry, error) {
	return decode(data, func(e *Entry, i, n int, header, payload []byte) error {
		if i == 0 {
			e.Events = make([]Event, n)
		}
		return e.read(&e.Events[i], i, header, payload)
	})
}

// DecodeEvent is Decode for one event of the entry, and costs little more than the hash does. It returns nil if the
// entry has no such event.
func DecodeEvent(data []byte, index int) (*Event, error) {
	var ev *Event
	_, err := decode(data, func(e *Entry, i, _ int, header, payload []byte) error {
		if i != index {
			return nil
		}
		ev = new(Event)
		return e.read(ev, i, header, payload)
	})
	if err != nil {
		return nil, err
	}
	return ev, nil
}

// read reads one event of the entry.
func (e *Entry) read(ev *Event, i int, header, payload []byte) error {
	if err := decodeEvent(ev, header, payload, len(e.Origins)); err != nil {
		return err
	}
	e.place(ev, i)
	return nil
}

// decode is walk with the errors of Decode.
func decode(data []byte, event func(e *Entry, i, n int, header, payload []byte) error) (*Entry, error) {
	e, err := walk(data, event)
	if version := errors.Is(err, ErrVersion); version || errors.Is(err, wire.ErrTail) {
		switch _, damaged := Survey(data, func([]byte) {}); {
		case damaged == nil:
			err = later(err)
		case version && !errors.Is(damaged, ErrVersion): // nobody has written that
			return nil, damaged
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, nil
}

// later marks an error about what is stored as its writer meant it, if that is a tail.
func later(err error) error {
	if errors.Is(err, wire.ErrTail) {
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	return err
}

// Survey checks a stored entry against its own hash and returns what Decode does, but for the events. see is given the
// task of each, in bytes that are data's. Errors wrap ErrDamaged.
func Survey(data []byte, see func(task []byte)) (*Entry, error) {
	e, err := walk(data, func(_ *Entry, _, _ int, header, _ []byte) error {
		r := wire.NewReader(header)
		r.ArrayOf(7)
		r.Uint()
		see(r.TextView())
		return r.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return e, nil
}

// walk reads an entry, lets event read each of its n events, and checks all of it against the hash.
func walk(data []byte, event func(e *Entry, i, n int, header, payload []byte) error) (*Entry, error) {
	if err := scan(data); err != nil {
		return nil, err
	}
	r := wire.NewReader(data)
	n := r.Array()
	if v := r.Uint(); r.Err() == nil && v != EntryVersion {
		return nil, fmt.Errorf("%w: entry version %d, this program reads %d", ErrVersion, v, EntryVersion)
	}
	if n != 5 {
		return nil, fmt.Errorf("array of %d, want 5", n)
	}
	head := r.View()
	e, origins, err := decodeHead(head)
	if err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	if n := r.Array(); n%2 != 0 || n/2 != origins || origins > len(data)/leastOriginBytes {
		return nil, fmt.Errorf("array of %d origins and answers in %d bytes, its head says %d origins", n, len(data), origins)
	}
	digests := make([]byte, 0, origins*len(e.Hash))
	if origins > 0 {
		e.Origins = make([]Origin, origins)
	}
	var scratch wire.Writer
	for i := range e.Origins {
		o := &e.Origins[i]
		header := r.View()
		err := decodeOrigin(o, header)
		if o.Answers = r.Bytes(); err == nil {
			err = o.check(e.Origins[:i])
		}
		if err != nil {
			return nil, fmt.Errorf("origin %d of entry %d: %w", i, e.Number, err)
		}
		scratch.B = append(scratch.B[:0], header...)
		d := digest(&scratch, sum(o.Answers))
		digests = append(digests, d[:]...)
	}
	n = r.Array()
	if n+origins == 0 || n%2 != 0 || n/2 > min(MaxEntryEvents, len(data)/leastEventBytes) {
		return nil, fmt.Errorf("array of %d headers and payloads", n)
	}
	digests = slices.Grow(digests, n/2*len(e.Hash))
	for i := range n / 2 {
		header, payload := r.View(), r.View()
		if err := event(e, i, n/2, header, payload); err != nil {
			return nil, fmt.Errorf("event %d of entry %d: %w", i, e.Number, err)
		}
		scratch.B = append(scratch.B[:0], header...)
		d := digest(&scratch, sum(payload))
		digests = append(digests, d[:]...)
	}
	stored := r.View()
	if err := r.Close(); err != nil {
		return nil, err
	}
	e.Hash = chain(e.Prev, sha256.Sum256(head), digests)
	if string(stored) != string(e.Hash[:]) {
		return nil, fmt.Errorf("entry %d of shard %d: hash %x, its content has %s", e.Number, e.Shard, stored, e.Hash)
	}
	return e, nil
}

// decodeHead returns how many origins follow, too.
func decodeHead(head []byte) (*Entry, int, error) {
	if err := scan(head); err != nil {
		return nil, 0, err
	}
	e := new(Entry)
	r := wire.NewReader(head)
	r.ArrayOf(8)
	e.Shard, e.Number = uint16(upTo(r, math.MaxUint16)), upTo(r, maxEntryNumber)
	e.Epoch, e.Owner, e.Time = r.Int(), r.Text(), Millis(r.Int())
	if prev := r.View(); len(prev) == len(e.Prev) {
		copy(e.Prev[:], prev)
	} else {
		r.Fail("hash of %d bytes", len(prev))
	}
	origins := int(upTo(r, math.MaxInt32))
	e.Rules = r.Uint()
	if err := r.Close(); err != nil {
		return nil, 0, err
	}
	if e.Rules == 0 || e.Rules > FoldRules {
		return nil, 0, fmt.Errorf("%w: rules %d of the fold, this program has 1 to %d", ErrVersion, e.Rules, FoldRules)
	}
	return e, origins, nil
}

func decodeEvent(e *Event, header, payload []byte, origins int) error {
	if err := scan(header); err != nil {
		return err
	}
	r := wire.NewReader(header)
	r.ArrayOf(7)
	kind := r.Uint()
	e.Task, e.Seq, e.Prev, e.Origin, e.RequestID = TaskID(r.Text()), r.Uint(), Ref(r.Uint()), int(upTo(r, math.MaxInt32)), r.Text()
	if err := r.Err(); err != nil {
		return err
	}
	if kind >= uint64(kindEnd) || kind == 0 {
		return fmt.Errorf("%w: kind %d of event, this program reads 1 to %d", ErrVersion, kind, kindEnd-1)
	}
	e.Body = newBody(Kind(kind))
	var p Payload
	if payload != nil {
		p = append(make(Payload, 0, len(payload)), payload...)
	}
	e.Body.decode(r, p)
	if err := r.Close(); err != nil {
		return err
	}
	if p != nil && e.Body.payload() == nil {
		return fmt.Errorf("payload of %d bytes behind %s, which has none", len(p), e.Kind())
	}
	return e.check(origins)
}
