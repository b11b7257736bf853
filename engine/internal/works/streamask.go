package works

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
)

// runs returns the task of an attempt that runs; nil = it is over, or runs elsewhere.
func (o *atOwner) runs(id string, started uint64, node string) *projection.Task {
	t := o.state.Attempt(events.Ref(started))
	if t == nil || t.ID != events.TaskID(id) || t.Node != node {
		return nil
	}
	return t
}

// position tells where the partition under way begins.
func (o *atOwner) position(q *Position) command.Answer {
	t := o.runs(q.Task, q.Started, q.Node)
	if t == nil {
		return stale()
	}
	of, _ := o.all.WorkerOf(t.ID)
	if of == nil || !of.IsStream(t.Started) {
		return stale()
	}
	token, until := of.Position()
	s := streamed{Token: []byte(token), Until: []byte(until), Fence: fence(o.state, 0)}
	part, _ := of.Part()
	s.Counted = part.Items.Done + part.Items.Failed + part.Items.Skipped
	if of.Stream != nil {
		s.Open = of.Stream.Open
		for key := range of.Stream.Keys {
			s.Held = append(s.Held, hashOf(key))
		}
		slices.Sort(s.Held)
	}
	return s.answer()
}

// hashOf returns the hash of a key, as workledger.Position has it.
func hashOf(key string) uint64 {
	sum := sha256.Sum256([]byte(key))
	return binary.BigEndian.Uint64(sum[:])
}

// left tells the changes of a hold that are left, as many as one answer takes.
func (o *atOwner) left(q *Left) command.Answer {
	t := o.runs(q.Task, q.Started, q.Node)
	if t == nil {
		return stale()
	}
	_, h := o.all.HoldOf(t.ID)
	switch {
	case h == nil && o.all.IsHold(t.ID):
		return (&streamed{}).answer()
	case h == nil:
		return command.Refused(command.AnswerState, "it is the task of no hold")
	}
	s := streamed{From: h.Done}
	var all []held
	size := 0
	for _, is := range h.Changes {
		c := held{
			appends: true,
			at:      is.At,
			data:    is.Data,
			code:    is.Code,
			message: is.Message,
		}
		if size += c.size(); len(all) > 0 && size > events.MaxHeldBytes {
			break
		}
		all = append(all, c)
	}
	s.Changes = encodeChanges(all)
	return s.answer()
}

// found wraps the answer to a question.
func found(linear bool, a command.Answer) command.Found {
	return command.Found{
		Items:  1,
		Bytes:  len(a.Data),
		Linear: linear,
		Answer: func() command.Answer { return a },
	}
}
