package command

import (
	"fmt"

	"taskledger/internal/message"
	"taskledger/internal/wire"
)

// Command is one request to a shard: a pointer to a type that is registered in table, here or, for those of items,
// by package itemcommand. What running tasks cause all the time encodes itself: Submit, Merge, Complete, Progress,
// Offer and Reconcile. The others, which people and readers ask, are messages, encoded by package message.
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

// The numbers of the commands. They are never used again for another.
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
	OpUpdateItems // from here on those of package itemcommand
	OpClaimItem
	OpReadItems
	OpItemPage
	OpItemGroups
	OpAwaitItems
	opCount
)

// table makes an empty command of each number. Each command's file registers it.
var table [opCount]func() Command

// Register adds a command of another package, when that is initialized.
func Register(op uint64, empty func() Command) bool { return register(op, empty) }

func register(op uint64, empty func() Command) bool {
	if table[op] != nil {
		panic(fmt.Sprintf("command %d is registered twice", op))
	}
	table[op] = empty
	return true
}

// New returns an empty command of that number; nil when there is none.
func New(op uint64) Command {
	if op == 0 || op >= opCount || table[op] == nil {
		return nil
	}
	return table[op]()
}

// decided is a command of LaneSubmit or LaneWork: it is decided within an entry.
type decided interface{ Decide(d *Decider) Answer }

// maxCommandBytes bounds the Size of a command that is decided within an entry. The largest one lists MaxReconciled
// attempts, the others carry one payload.
const maxCommandBytes = 296 << 10

// Check returns a *task.LimitError or a *store.InvalidError for a command that is larger than a shard decides or
// answers. Senders ask before they queue a command, owners before they decide or answer it.
func Check(c Command) error {
	if err := c.Limits(); err != nil {
		return err
	}
	if _, ok := c.(decided); ok {
		return atMost("command", c.Size(), maxCommandBytes)
	}
	return nil
}

// Misfit is the refusal of a command that Check refuses.
func Misfit(c Command) (refusal Answer, refused bool) {
	if err := Check(c); err != nil {
		return Refused(AnswerInvalid, "%v", err), true
	}
	return Answer{}, false
}
