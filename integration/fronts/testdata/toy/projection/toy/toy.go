// Package toy counts the attempts of a shard that have ended, and keeps the task of the last one.
package toy

import (
	"fmt"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
	"taskledger/projection/record"
)

// State holds what the toy knows of a shard.
type State struct {
	record.Chain
	Count uint64        // attempts that have ended
	Rang  uint64        // of them, when the bell rang last
	Held  events.TaskID // the task of the last one
}

// countedBytes bounds the event that follows the end of an attempt.
const countedBytes = 64 + events.MaxIDBytes

// Extend returns the toy of a shard before its first event.
func Extend(shard extension.Shard) extension.Extension {
	s := new(State)
	x := extension.OfSingle(events.OfToy, s)
	fold := x.Fold
	x.Fold = func(ev *events.Event) error {
		before := s.Held
		err := fold(ev)
		shard.Reconsider(before)
		shard.Reconsider(s.Held)
		return err
	}
	x.Holds = func(t extension.Task) bool { return t.ID == s.Held }
	x.Ended = func(t extension.Task, _ *events.Event) []events.Event {
		seq, prev := s.Next()
		return []events.Event{{Seq: seq, Prev: prev, Body: &events.ToyCounted{Task: t.ID}}}
	}
	x.EndBytes = countedBytes
	return x
}

// Of returns the toy of a shard.
func Of(in extension.Holder) *State { return in.State(events.OfToy).(*State) }

// Fold applies the next event.
func (s *State) Fold(ev *events.Event) error {
	switch b := ev.Body.(type) {
	case *events.ToyCounted:
		if err := s.Follow(ev); err != nil {
			return err
		}
		s.Count, s.Held = s.Count+1, b.Task
	case *events.ToyRang:
		if b.For != s.Count || b.For == s.Rang {
			return fmt.Errorf("the bell rang for %d of %d attempts", b.For, s.Count)
		}
		if err := s.Follow(ev); err != nil {
			return err
		}
		s.Rang = b.For
	}
	return nil
}

// Encode writes the array [seq, last, count, rang, held].
func (s *State) Encode(w *wire.Writer) {
	w.Array(5)
	s.Chain.Encode(w)
	w.Uint(s.Count)
	w.Uint(s.Rang)
	w.Text(string(s.Held))
}

// Decode reads what Encode wrote.
func (s *State) Decode(r *wire.Reader) {
	r.ArrayOf(5)
	s.Chain.Decode(r)
	s.Count, s.Rang, s.Held = r.Uint(), r.Uint(), events.TaskID(r.Text())
}
