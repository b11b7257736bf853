package command

import (
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
)

// Asked names the caller behind the commands of a batch from one of them on; the zero Caller is the sender.
type Asked struct {
	From   int // index of the first of these commands
	Caller events.Caller
}

// Add appends a command, and notes the caller that asked for it; nil is the sender.
func (b *Batch) Add(c Command, caller *events.Caller) {
	var is, last events.Caller
	if caller != nil {
		is = *caller
	}
	if n := len(b.Asked); n > 0 {
		last = b.Asked[n-1].Caller
	}
	if is != last {
		b.Asked = append(b.Asked, Asked{len(b.Commands), is})
	}
	b.Commands = append(b.Commands, c)
}

// encodeAsked writes an array of indexes and callers.
func (b *Batch) encodeAsked(w *wire.Writer) {
	w.Array(2 * len(b.Asked))
	for i := range b.Asked {
		w.Uint(uint64(b.Asked[i].From))
		b.Asked[i].Caller.Encode(w)
	}
}

// limits refuses a batch that is too large, or whose callers or principal no event can name.
func (b *Batch) limits() error {
	for i := range b.Asked {
		if err := b.Asked[i].Caller.Validate(); err != nil {
			return &store.InvalidError{Field: "caller", Problem: err.Error()}
		}
	}
	if err := limitNote("principal", b.Principal); err != nil {
		return err
	}
	return atMost("batch", b.size(), maxBatchSize)
}

// Origin returns the batch as an origin in an entry.
func (b *Batch) Origin() events.Origin {
	return events.Origin{
		Sender: b.Sender,
		Lane:   b.Lane,
		Number: b.Number,
		Caller: events.Caller{Principal: b.Principal},
	}
}
