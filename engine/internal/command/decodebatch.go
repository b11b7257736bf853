package command

import (
	"bytes"
	"errors"
	"fmt"

	"taskledger/events"
	"taskledger/internal/wire"
)

// DecodeBatch reads what Batch.Encode writes. What a later release asks is read as Unknown.
func (t Table) DecodeBatch(data []byte) (*Batch, error) {
	b, err := t.decodeBatch(data, false)
	if err != nil && b != nil && readsLater(b.Lane) {
		if later, failed := t.decodeBatch(data, true); failed == nil {
			return later, nil
		}
	}
	return b, err
}

func (t Table) decodeBatch(data []byte, later bool) (*Batch, error) {
	r, err := Scanned(data)
	if err != nil {
		return nil, err
	}
	fields := r.Array()
	if fields == 5 {
		r.Fail("batch of an earlier release, which does not say when it was made")
	} else if fields < 6 {
		r.Fail("batch of %d fields", fields)
	}
	b := &Batch{Sender: r.Text()}
	lane := r.Uint()
	b.Lane, b.Number, b.Made, b.Principal = uint8(lane), r.Uint(), events.Millis(r.Int()), r.Text()
	n := r.Array()
	if lane >= uint64(LaneCount) || len(b.Sender) > events.MaxNameBytes || b.Number == 0 || b.Sender == "" ||
		n == 0 || n%2 != 0 || n > 2*MaxBatchCommands {
		r.Fail("batch %d of lane %d from %q with %d commands", b.Number, lane, b.Sender, n/2)
		return nil, r.Err()
	}
	b.Commands = make([]Command, 0, n/2)
	var outcomes []Complete // they come in hundreds: one piece of memory for all
	for left := n / 2; left > 0; left-- {
		op := r.Uint()
		if later {
			b.Commands = append(b.Commands, t.decodeLater(r, op))
			continue
		}
		var c Command
		if op == opComplete {
			if len(outcomes) == 0 {
				outcomes = make([]Complete, left)
			}
			c, outcomes = &outcomes[0], outcomes[1:]
		} else if c = t.New(op); c == nil {
			return b, fmt.Errorf("%w: command %d is unknown", wire.ErrMalformed, op)
		}
		Decode(r, c)
		b.Commands = append(b.Commands, c)
	}
	switch {
	case later:
		b.decodeTail(r, fields)
	case fields > 7:
		r.Tail(fields, 7)
	case fields == 7:
		b.decodeAsked(r)
	}
	return b, r.Close()
}

// decodeAsked reads what encodeAsked wrote, for a batch whose commands are known.
func (b *Batch) decodeAsked(r *wire.Reader) {
	n := r.Array()
	if n == 0 || n%2 != 0 || n > 2*len(b.Commands) {
		r.Fail("%d callers of %d commands", n/2, len(b.Commands))
		return
	}
	b.Asked = make([]Asked, n/2)
	next := 0
	var last events.Caller
	for i := range b.Asked {
		from := r.Uint()
		if from < uint64(next) || from >= uint64(len(b.Commands)) {
			r.Fail("caller of command %d of %d", from, len(b.Commands))
			return
		}
		b.Asked[i].From = int(from)
		if b.Asked[i].Caller.Decode(r); b.Asked[i].Caller == last {
			r.Fail("caller of command %d is named again", from)
			return
		}
		next, last = int(from)+1, b.Asked[i].Caller
	}
}

// decodeTail reads the fields that follow the commands of a batch, which a later release may have made. If this
// release does not know all of them, every command becomes an Unknown: the caller or the condition of it is half
// understood.
func (b *Batch) decodeTail(r *wire.Reader, fields int) {
	known := fields <= 7
	if fields >= 7 {
		asked := wire.NewReader(r.Raw())
		b.decodeAsked(asked)
		switch err := asked.Close(); {
		case errors.Is(err, wire.ErrTail):
			b.Asked, known = nil, false
		case err != nil:
			r.FailBy(err)
		}
		r.Skip(fields - 7)
	}
	if known {
		return
	}
	for i, c := range b.Commands {
		unknown, later := c.(*Unknown)
		b.Commands[i] = &Unknown{Number: c.Op(), Known: !later || unknown.Known}
	}
}

// readsLater reports whether a batch of a lane is read in spite of commands of a later release. Batches of the
// other lanes wait for an owner that knows them: a report of an attempt must not be lost, and an offer is answered
// with assignments or not at all.
func readsLater(lane uint8) bool { return lane == LaneSubmit || lane == LaneQuery }

// decodeLater reads the command that follows its number. It returns an Unknown if only a later release knows the
// command, or all of its values.
func (t Table) decodeLater(r *wire.Reader, op uint64) Command {
	raw := r.Raw()
	c := t.New(op)
	later := &Unknown{Number: op, Known: c != nil, Raw: bytes.Clone(raw)}
	if r.Err() != nil || c == nil {
		return later
	}
	one := wire.NewReader(raw)
	Decode(one, c)
	switch err := one.Close(); {
	case errors.Is(err, wire.ErrTail):
		return later
	case err != nil:
		r.FailBy(err)
	}
	return c
}
