package command

import (
	"bytes"
	"errors"

	"taskledger/internal/wire"
)

// Unknown is a command of a later release: of a number that this one does not have, or with a tail that it does not know, in it, in a part
// of it, or in its batch. It is refused by the name of who cannot read it, since what is half understood must not be decided.
type Unknown struct {
	Number uint64
	Known  bool   // the number is known, and not all that the command holds
	Raw    []byte // the bytes of the command after its number; nil when its batch is not known
}

// LaterPlan stands for a request of a plan that has fields which this release does not know.
var LaterPlan = &Unknown{Number: opPlan, Known: true}

// Op is the number that was sent.
func (c *Unknown) Op() uint64 { return c.Number }

// Size is at least what it takes.
func (c *Unknown) Size() int { return commandBytes + len(c.Raw) }

func (*Unknown) Limits() error { return nil } // nothing of it is recorded

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

func (c *Unknown) Decide(d *Decider) Answer { return c.refused(d.Self) }

func (c *Unknown) refused(session string) Answer {
	what := "does not know"
	if c.Known {
		what = "does not know all fields of"
	}
	return Refused(AnswerState, "node %s %s command %d: upgrade it first", session[:min(len(session), maxShownNode)], what, c.Number)
}

// maxShownNode is how much of a session id a refusal shows: it begins with the name of the node.
const maxShownNode = 32

// readsLater reports whether a batch of a lane is read in spite of commands of a later release. Others wait for an owner that knows
// them: a report of an attempt must not be lost, and an offer is answered with assignments or not at all.
func readsLater(lane uint8) bool { return lane == LaneSubmit || lane == LaneQuery }

// decodeLater reads the command that follows its number, as an Unknown where only a later release knows it, or all of its values.
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
