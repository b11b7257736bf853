package events

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"

	"taskledger/internal/wire"
)

// Entry is one commit of a shard's journal.
type Entry struct {
	Shard   uint16
	Number  uint64 // 1, 2, 3 ... without gaps
	Epoch   int64  // the etcd revision of the ownership that it was written under
	Owner   string // session id of the node that wrote it
	Time    Millis // of all its events; never before the entry before
	Prev    Hash   // chain hash of the entry before; zero for the first
	Rules   uint64 // of the fold that its writer decided by
	Hash    Hash   // chain hash of this entry
	Origins []Origin
	Events  []Event
}

// ErrDamaged is wrapped when an entry's bytes contradict its hash, or make no sense.
var ErrDamaged = errors.New("damaged entry")

// ErrVersion is wrapped beside ErrDamaged by an entry of a version that this program does not know, with an event of a kind that it
// does not know, or written by rules of the fold that it does not have; and by one that is whole, with an event that says more than
// this program knows.
var ErrVersion = errors.New("unknown version")

// EntryVersion is the first value of a stored entry: the version that this program writes, and the only one that it reads.
const EntryVersion = 4

// FoldRules is the number of the rules by which this program folds events: it grows when the same events lead to another state. What
// was written by later rules is refused, since a decision may rest on them.
const FoldRules = 1

// What the smallest origin and the smallest event take encoded: Decode makes room for no more than fit.
const (
	leastOriginBytes = 8
	leastEventBytes  = 12
)

// Builder encodes an entry event by event, so that its size is known before the next command is decided.
//
// An entry is stored as a msgpack array
//
//	[3, head, [origin, answers, origin, answers ...], [header, payload, header, payload ...], chain hash]
//
// where head, origin, header and chain hash are binary strings and answers and payload are one, or nil. They hold the arrays
//
//	head    [shard, number, epoch, owner, time, prev, number of origins, number of the fold's rules]
//	origin  [sender, lane, number, principal] for a batch
//	        [batch, [principal, request id, traceparent]] for a caller whose command a batch brought
//	header  [kind, task, seq, prev, origin, request id, body]
//
// with the body of each kind as its encode method writes it. The digest of an event is SHA-256(header, SHA-256(payload)),
// that of an origin SHA-256(origin, SHA-256(answers)), 32 zero bytes standing for the sum of none; the chain hash is
// SHA-256(prev, SHA-256(head), digests of origins ..., digests of events ...). So an event can be shown without the others
// of its entry, who asked for it without what else was answered, and a payload erased without breaking the chain.
type Builder struct {
	Entry         Entry
	body          wire.Writer // pairs of header and payload
	scratch       wire.Writer
	digests       []byte // of the events
	originDigests []byte
	origins       int // bytes of Origins

	created   arena[Created]
	started   arena[Started]
	succeeded arena[Succeeded]
}

// Reset prepares the builder for an entry; the head's Origins and Events are added by AddOrigin and Add. What the builder
// returned of the entry before must no longer be used, but what Seal did.
func (b *Builder) Reset(head Entry) {
	clear(b.Entry.Origins)
	clear(b.Entry.Events)
	head.Origins, head.Events, head.Rules = b.Entry.Origins[:0], b.Entry.Events[:0], FoldRules
	b.Entry = head
	b.body.B, b.digests, b.origins = b.body.B[:0], b.digests[:0], 0
	b.created.reset()
	b.started.reset()
	b.succeeded.reset()
}

// Created, Started and Succeeded return a body for Add, of a kind that every task has, in memory of the builder's.
func (b *Builder) Created(body Created) *Created       { return b.created.keep(body) }
func (b *Builder) Started(body Started) *Started       { return b.started.keep(body) }
func (b *Builder) Succeeded(body Succeeded) *Succeeded { return b.succeeded.keep(body) }

// Size is an upper bound of the encoded size so far.
func (b *Builder) Size() int { return len(b.body.B) + b.origins + 512 }

// AddOrigin records a decided batch, or a caller behind the last one, and returns what events that it causes put into Origin. The
// answers of a batch may be set later.
func (b *Builder) AddOrigin(o Origin) int {
	b.Entry.Origins = append(b.Entry.Origins, o)
	b.origins += o.size()
	return len(b.Entry.Origins)
}

// SetAnswers sets the answers of the last batch.
func (b *Builder) SetAnswers(answers []byte) {
	b.Entry.Origins[b.lastBatch()].Answers = answers
	b.origins += len(answers)
}

// DropOrigin takes the last batch back, which must have caused no event.
func (b *Builder) DropOrigin() {
	last := b.lastBatch()
	for i := range b.Entry.Origins[last:] {
		b.origins -= b.Entry.Origins[last+i].size()
	}
	clear(b.Entry.Origins[last:])
	b.Entry.Origins = b.Entry.Origins[:last]
}

// lastBatch is the index of the last origin that is a batch.
func (b *Builder) lastBatch() int {
	last := len(b.Entry.Origins) - 1
	for b.Entry.Origins[last].Batch != 0 {
		last--
	}
	return last
}

// Add appends an event, fills in what the entry knows of it and returns it. The pointer is valid until the next Add.
func (b *Builder) Add(ev Event) *Event {
	b.Entry.Events = append(b.Entry.Events, ev)
	e := &b.Entry.Events[len(b.Entry.Events)-1]
	b.Entry.place(e, len(b.Entry.Events)-1)

	w := &b.scratch
	w.B = w.B[:0]
	w.Array(7)
	w.Uint(uint64(ev.Body.Kind()))
	w.Text(string(ev.Task))
	w.Uint(ev.Seq)
	w.Uint(uint64(ev.Prev))
	w.Uint(uint64(ev.Origin))
	w.Text(ev.RequestID)
	ev.Body.encode(w)
	payload := ev.Body.payload()
	b.body.Bytes(w.B)
	b.body.Bytes(payload)
	d := digest(w, sum(payload))
	b.digests = append(b.digests, d[:]...)
	return e
}

// Seal returns the stored form, in memory of its own, and sets the entry's Hash. It refuses what Decode would refuse: such
// an entry could be committed and never be read again.
func (b *Builder) Seal() ([]byte, error) {
	e := &b.Entry
	if e.Number > maxEntryNumber {
		return nil, fmt.Errorf("entry %d of shard %d: want %d at most", e.Number, e.Shard, uint64(maxEntryNumber))
	}
	if len(e.Events)+len(e.Origins) == 0 || len(e.Events) > MaxEntryEvents {
		return nil, fmt.Errorf("entry %d of shard %d: %d events, want %d at most, or %d origins, want one at least",
			e.Number, e.Shard, len(e.Events), MaxEntryEvents, len(e.Origins))
	}
	for i := range e.Origins {
		if err := e.Origins[i].check(e.Origins[:i]); err != nil {
			return nil, fmt.Errorf("origin %d of entry %d of shard %d: %w", i, e.Number, e.Shard, err)
		}
	}
	for i := range e.Events {
		if err := e.Events[i].check(len(e.Origins)); err != nil {
			return nil, fmt.Errorf("event %d of entry %d of shard %d: %w", i, e.Number, e.Shard, err)
		}
	}
	w := &b.scratch
	w.B = w.B[:0]
	w.Array(8)
	w.Uint(uint64(e.Shard))
	w.Uint(e.Number)
	w.Int(e.Epoch)
	w.Text(e.Owner)
	w.Int(int64(e.Time))
	w.Bytes(e.Prev[:])
	w.Uint(uint64(len(e.Origins)))
	w.Uint(e.Rules)

	out := wire.Writer{B: make([]byte, 0, b.Size())}
	out.Array(5)
	out.Uint(EntryVersion)
	out.Bytes(w.B)
	head := sha256.Sum256(w.B)
	out.Array(2 * len(e.Origins))
	b.originDigests = b.originDigests[:0]
	for i := range e.Origins {
		o := &e.Origins[i]
		w.B = w.B[:0]
		o.encode(w)
		out.Bytes(w.B)
		out.Bytes(o.Answers)
		d := digest(w, sum(o.Answers))
		b.originDigests = append(b.originDigests, d[:]...)
	}
	out.Array(2 * len(e.Events))
	out.B = append(out.B, b.body.B...)
	e.Hash = chain(e.Prev, head, b.originDigests, b.digests)
	out.Bytes(e.Hash[:])
	if len(out.B) > MaxEntryBytes {
		return nil, fmt.Errorf("entry %d of shard %d: %d bytes exceed the limit of %d", e.Number, e.Shard, len(out.B), MaxEntryBytes)
	}
	return out.B, nil
}

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

// DecodeEvent is Decode for one event of the entry, and costs little more than the hash does. It returns nil if the entry
// has no such event.
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

// Survey checks a stored entry against its own hash and returns what Decode does, but for the events. see is given the task
// of each, in bytes that are data's. Errors wrap ErrDamaged.
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

// scan refuses what decoding would cost more than a small multiple of, and what is larger than any entry.
func scan(data []byte) error {
	if len(data) > MaxEntryBytes {
		return fmt.Errorf("%d bytes exceed the limit of %d", len(data), MaxEntryBytes)
	}
	return wire.Scan(data)
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

// check is what both Seal and Decode demand of an event in an entry with that many origins.
func (e *Event) check(origins int) error {
	if of := e.Kind().Record(); of == OfItem {
		if err := checkItem(e.Task, e.Body); err != nil {
			return err
		}
	} else if of != OfTask {
		if e.Task != "" || e.RequestID != "" {
			return fmt.Errorf("task %q and request id %q in an event of the %s", e.Task, e.RequestID, of)
		}
	} else if err := e.Task.Validate(); err != nil {
		return err
	}
	if e.Origin < 0 || e.Origin > origins {
		return fmt.Errorf("origin %d of %d", e.Origin, origins)
	}
	if n := len(e.Body.payload()); n > MaxPayloadBytes+1 {
		return fmt.Errorf("payload of %d bytes exceeds the limit of %d", n-1, MaxPayloadBytes)
	}
	return checkBody(e.Body)
}

// checkBody is what both Seal and Decode demand of what an event says.
func checkBody(body Body) error {
	switch b := body.(type) {
	case *Created:
		if _, err := b.Policy.Complete(); err != nil {
			return err
		}
		return b.Ties.check()
	case *Rescheduled:
		if err := CheckReason(b.Reason); err != nil {
			return err
		}
		return b.Terms.check()
	case *Merged:
		return b.Terms.check()
	case *Joined:
		return b.Terms.check()
	case *StoreForgotten:
		return b.check()
	case *Failed:
		if n := len(b.Error.Properties); n > MaxProperties {
			return fmt.Errorf("%d properties exceed the limit of %d", n, MaxProperties)
		}
	case *AcceptedLoss:
		return checkLoss(b.Entry, b.Reason)
	case *Recovered:
		return checkLoss(b.Entry, b.Reason)
	case *Paused:
		return CheckReason(b.Reason)
	}
	return nil
}

// upTo reads a number that must not exceed limit.
func upTo(r *wire.Reader, limit uint64) uint64 {
	v := r.Uint()
	if v > limit {
		r.Fail("number %d exceeds %d", v, limit)
	}
	return v
}

// place fills in what an event knows from its entry.
func (e *Entry) place(ev *Event, index int) {
	ev.Position = Position{e.Shard, RefOf(e.Number, index)}
	ev.At = e.Time
	ev.Asker = e.asker(ev.Origin)
}

// sum is the sum of a payload, or of answers, in a digest; it tells none from an empty one.
func sum(content []byte) (s Hash) {
	if content != nil {
		s = sha256.Sum256(content)
	}
	return s
}

// digest is the digest of an event or an origin, as Builder describes it. It appends to the header.
func digest(header *wire.Writer, content Hash) Hash {
	header.B = append(header.B, content[:]...)
	return sha256.Sum256(header.B)
}

// chain is the chain hash of an entry, as Builder describes it.
func chain(prev, head Hash, digests ...[]byte) (next Hash) {
	h := sha256.New()
	h.Write(prev[:])
	h.Write(head[:])
	for _, d := range digests {
		h.Write(d)
	}
	h.Sum(next[:0])
	return next
}
