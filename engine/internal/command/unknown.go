package command

import (
	"bytes"

	"taskledger/internal/wire"
)

// Unknown is a command of a later release: with a number that this release does not have, or with a tail that it
// does not know in the command, in a part of it, or in its batch. The refusal names the node that cannot read it,
// since a half understood command must not be decided.
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
	shown := session[:min(len(session), maxShownNode)]
	return Refused(AnswerState, "node %s %s command %d: upgrade it first", shown, what, c.Number)
}

// maxShownNode bounds the bytes of a session id that a refusal shows: it begins with the name of the node.
const maxShownNode = 32
