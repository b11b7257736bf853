package command

import (
	"fmt"

	"taskledger/internal/message"
	"taskledger/internal/wire"
)

// Command is one request to a shard: a pointer to a type of a Table. The commands of running tasks encode
// themselves: Submit, Merge, Complete, Progress, Offer and Reconcile. The others, which people and readers ask, are
// encoded by package message.
type Command interface {
	Op() uint64
	Size() int     // at least what it takes encoded, and what its events and its answer take in an entry
	Limits() error // why it is larger than Check lets pass
}

// selfEncoded is a command with a form of its own.
type selfEncoded interface {
	encode(w *wire.Writer)
	decode(r *wire.Reader)
}

// Encode writes the number of a command and the command.
func Encode(w *wire.Writer, c Command) {
	w.Uint(c.Op())
	if own, ok := c.(selfEncoded); ok {
		own.encode(w)
		return
	}
	w.Bytes(message.Encode(c))
}

// Decode reads into c what follows its number.
func Decode(r *wire.Reader, c Command) {
	if own, ok := c.(selfEncoded); ok {
		own.decode(r)
		return
	}
	if err := message.Decode(r.View(), maxMessageBytes, c); err != nil {
		r.FailBy(fmt.Errorf("command %d: %w", c.Op(), err))
	}
}

// The numbers of the commands of this package. None is ever used again for another: package commands has all.
const (
	opSubmit uint64 = iota + 1
	opMerge
	opComplete
	opProgress
	opOperate
	opPause
	opOffer
	opReconcile
	opHandOver
	opGet
	opAwait
	opList
	opInfo
	opExplain
	opPlan
	opBarrier
	opSettings
	opTally
)

// commandBytes bounds the bytes of a command without its texts and payloads: encoded, or as an event and its answer.
const commandBytes = 192
