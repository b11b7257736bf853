package events

import (
	"crypto/sha256"
	"fmt"

	"taskledger/internal/wire"
)

// Builder encodes an entry event by event, so that its size is known before the next command is decided.
//
// An entry is stored as a msgpack array
//
//	[4, head, [origin, answers, origin, answers ...], [header, payload, header, payload ...], chain hash]
//
// where head, origin, header and chain hash are binary strings and answers and payload are one, or nil. They hold the
// arrays
//
//	head    [shard, number, epoch, owner, time, prev, number of origins, number of the fold's rules]
//	origin  [sender, lane, number, principal] for a batch
//	        [batch, [principal, request id, traceparent]] for a caller whose command a batch brought
//	header  [kind, task, seq, prev, origin, request id, body]
//
// with the body of each kind as its encode method writes it. The digest of an event is SHA-256(header,
// SHA-256(payload)), that of an origin SHA-256(origin, SHA-256(answers)), 32 zero bytes standing for the sum of none;
// the chain hash is SHA-256(prev, SHA-256(head), digests of origins ..., digests of events ...). So an event can be
// shown without the others of its entry, who asked for it without what else was answered, and a payload erased without
// breaking the chain.
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

// Reset prepares the builder for an entry; the head's Origins and Events are added by AddOrigin and Add. What the
// builder returned of the entry before must no longer be used, but what Seal did.
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

// Size returns an upper bound of the bytes that the entry takes encoded, as it is so far.
func (b *Builder) Size() int { return len(b.body.B) + b.origins + 512 }

// AddOrigin records a decided batch, or a caller behind the last one, and returns what events that it causes put into
// Origin. The answers of a batch may be set later.
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

// Seal returns the stored form, in memory of its own, and sets the entry's Hash. It refuses what Decode would refuse:
// such an entry could be committed and never be read again.
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
		return nil, fmt.Errorf("entry %d of shard %d: %d bytes exceed the limit of %d",
			e.Number, e.Shard, len(out.B), MaxEntryBytes)
	}
	return out.B, nil
}
