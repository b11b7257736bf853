package events

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"taskledger/internal/wire"
)

// Origin names the source of events: a batch of commands that was decided in an entry, or one of the callers whose
// commands the batch brought.
type Origin struct {
	Caller        // of a batch the principal of its sender alone
	Batch  int    // of a caller: 1 + index of the batch in the entry; 0: this is a batch
	Sender string // of a batch: a node or client object
	Lane   uint8
	Number uint64 // of the batch; grows within sender and lane
	// Answers holds the answers to the batch, as the engine encodes them.
	Answers []byte
}

// size is an upper bound of what it takes in the entry.
func (o *Origin) size() int { return o.Bytes() + len(o.Sender) + len(o.Answers) + 32 }

// encode writes [sender, lane, number, principal] for a batch, and [batch, caller] for a caller.
func (o *Origin) encode(w *wire.Writer) {
	if o.Batch != 0 {
		w.Array(2)
		w.Uint(uint64(o.Batch))
		o.Caller.Encode(w)
		return
	}
	w.Array(4)
	w.Text(o.Sender)
	w.Uint(uint64(o.Lane))
	w.Uint(o.Number)
	w.Text(o.Principal)
}

// decodeOrigin reads all but the answers.
func decodeOrigin(o *Origin, header []byte) error {
	if err := scan(header); err != nil {
		return err
	}
	r := wire.NewReader(header)
	switch n := r.Array(); n {
	case 2:
		if o.Batch = int(upTo(r, math.MaxInt32)); o.Batch == 0 {
			r.Fail("caller without a batch")
		}
		o.Caller.Decode(r)
	case 4:
		o.Sender, o.Lane, o.Number, o.Principal = r.Text(), uint8(upTo(r, math.MaxUint8)), r.Uint(), r.Text()
	default:
		r.Fail("array of %d, want 2 or 4", n)
	}
	return r.Close()
}

// check returns an error for an origin that neither Seal nor Decode accepts after those before it, none of which
// stands for a batch that is not shown.
func (o *Origin) check(before []Origin) error {
	switch {
	case o.Batch == 0:
		return nil
	case o.Batch < 0 || o.Batch > len(before) || before[o.Batch-1].Batch != 0:
		return fmt.Errorf("caller of a command of origin %d, which is no batch before it", o.Batch-1)
	case o.Answers != nil:
		return errors.New("caller with answers")
	}
	return o.Validate()
}

// caller returns who asked for the events of an origin.
func (e *Entry) caller(origin int) Caller {
	if origin == 0 {
		return Caller{}
	}
	o := &e.Origins[origin-1]
	a := o.Caller
	if o.Batch != 0 {
		a.Principal = cmp.Or(a.Principal, e.Origins[o.Batch-1].Principal)
	}
	return a
}
