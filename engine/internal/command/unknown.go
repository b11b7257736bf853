package command

import (
	"bytes"

	"taskledger/internal/wire"
)

// Unknown is a command of a later release: of a number that this one does not have, or with a tail that it does not know. It is
// refused by the name of who cannot read it, since what is half understood must not be decided.
type Unknown struct {
	Number uint64
	Raw    []byte // the bytes of the command after its number
}

// Op is the number that was sent.
func (c *Unknown) Op() uint64 { return c.Number }

// Size is at least what it takes.
func (c *Unknown) Size() int { return commandBytes + len(c.Raw) }

func (*Unknown) limits() error { return nil } // nothing of it is recorded

func (c *Unknown) encode(w *wire.Writer) { w.B = append(w.B, c.Raw...) }

func (c *Unknown) decode(r *wire.Reader) { c.Raw = bytes.Clone(r.Raw()) }

// Misplaced refuses a command that is not for its lane, or that the node of a session does not know.
func Misplaced(c Command, session string) Answer {
	later, unknown := c.(*Unknown)
	if !unknown {
		return Refused(AnswerInvalid, "command %d is not for this lane", c.Op())
	}
	return later.refused(session)
}

func (c *Unknown) decide(d *Decider) Answer { return c.refused(d.Self) }

func (c *Unknown) refused(session string) Answer {
	what := "does not know"
	if New(c.Number) != nil {
		what = "does not know all fields of"
	}
	return Refused(AnswerState, "node %s %s command %d: upgrade it first", session[:min(len(session), maxShownNode)], what, c.Number)
}

// maxShownNode is how much of a session id a refusal shows: it begins with the name of the node.
const maxShownNode = 32

// readsLater reports whether a batch of a lane is read in spite of commands of a later release. Others wait for an owner that knows
// them: a report of an attempt must not be lost, and an offer is answered with assignments or not at all.
func readsLater(lane uint8) bool { return lane == LaneSubmit || lane == LaneQuery }

// decodeLater reads the command that follows its number, as an Unknown where only a later release knows it or its tail.
func decodeLater(r *wire.Reader, op uint64) Command {
	raw := r.Raw()
	c := New(op)
	if r.Err() != nil || c == nil || hasTail(raw, c) {
		return &Unknown{Number: op, Raw: bytes.Clone(raw)}
	}
	one := wire.NewReader(raw)
	Decode(one, c)
	if err := one.Close(); err != nil {
		r.Fail("%v", err)
	}
	return c
}

// hasTail reports whether a command has more fields than this release knows, those of an empty one.
func hasTail(raw []byte, empty Command) bool {
	w := wire.Scratch()
	defer w.Done()
	Encode(w, empty)
	known, r := wire.NewReader(w.B), wire.NewReader(raw)
	known.Uint()
	if n, want := fields(r), fields(known); n != want {
		return n > want
	}
	return empty.Op() == opMerge && hasTail(r.Raw(), new(Submit)) // it begins with one
}

// fields reads the head of a command and returns how many fields follow: it is an array, or a message in a binary string.
func fields(r *wire.Reader) int {
	if r.NextBytes() {
		return wire.NewReader(r.View()).Array()
	}
	return r.Array()
}
