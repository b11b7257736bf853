package engine

import (
	"taskledger/internal/message"
	"taskledger/internal/wire"
)

// command is one request to a shard. The set is closed: pointers to the types below. What is sent for every task encodes
// itself; the others are messages.
type command interface {
	op() uint64
	size() int // at least what it takes encoded, and what its events and its answer take in an entry
}

// selfEncoded is a command that is sent for every task or every offer.
type selfEncoded interface {
	encode(w *wire.Writer)
	decode(r *wire.Reader)
}

func encodeCommand(w *wire.Writer, c command) {
	w.Uint(c.op())
	if own, ok := c.(selfEncoded); ok {
		own.encode(w)
		return
	}
	w.Bytes(message.Encode(c))
}

// decodeCommand reads into c what follows its number.
func decodeCommand(r *wire.Reader, c command) {
	if own, ok := c.(selfEncoded); ok {
		own.decode(r)
		return
	}
	if err := message.Decode(r.View(), maxMessageBytes, c); err != nil {
		r.Fail("command %d: %v", c.op(), err)
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
	opRollCall
	opHandOver
	opGet
	opAwait
	opList
	opInfo
	opExplain
	opPlan
	opSettle
)

// commands are all there are, by number. A command is a file: its form, and what it decides if it is of laneSubmit or laneWork.
var commands = [...]func() command{
	opSubmit:   func() command { return new(submitCommand) },
	opMerge:    func() command { return new(mergeCommand) },
	opComplete: func() command { return new(completeCommand) },
	opProgress: func() command { return new(progressCommand) },
	opOperate:  func() command { return new(operateCommand) },
	opPause:    func() command { return new(pauseCommand) },
	opOffer:    func() command { return new(offerCommand) },
	opRollCall: func() command { return new(rollCallCommand) },
	opHandOver: func() command { return new(handOverCommand) },
	opGet:      func() command { return new(getCommand) },
	opAwait:    func() command { return new(awaitCommand) },
	opList:     func() command { return new(listCommand) },
	opInfo:     func() command { return new(infoCommand) },
	opExplain:  func() command { return new(explainCommand) },
	opPlan:     func() command { return new(planCommand) },
	opSettle:   func() command { return new(settleCommand) },
}

// newCommand returns an empty command of that number; nil when there is none.
func newCommand(op uint64) command {
	if op == 0 || op >= uint64(len(commands)) {
		return nil
	}
	return commands[op]()
}

// decided is a command of laneSubmit or laneWork: it is decided within an entry.
type decided interface{ decide(d *decider) answer }
