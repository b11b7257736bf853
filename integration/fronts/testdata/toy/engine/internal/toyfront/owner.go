// Package toyfront rings a bell at the owner of a shard, at times that it works out beside its turns.
package toyfront

import (
	"context"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/toy"
	"taskledger/task"
)

// Ask asks how many attempts have ended.
type Ask struct{ Linear bool }

// Op implements command.Command.
func (*Ask) Op() uint64 { return 42 }

// Size implements command.Command.
func (*Ask) Size() int { return 64 }

// Limits implements command.Command.
func (*Ask) Limits() error { return nil }

// AtOwner returns the extension of owners. rang is called once the bell has rung, and is committed.
func AtOwner(rang func(count uint64)) shard.NewExtension {
	return func(state *projection.Shard) shard.Extension {
		s := toy.Of(state)
		var due events.Millis // 0 = nothing is prepared
		var ringing, noted bool
		return shard.Extension{
			NextDue: func() events.Millis { return due },
			MakeDue: func(now events.Millis) bool {
				if due == 0 || due > now {
					return false
				}
				due, ringing = 0, true
				return true
			},
			Prepare: func(now events.Millis) func(context.Context) func() {
				if s.Rang == s.Count || due != 0 || ringing {
					return nil
				}
				return func(context.Context) func() {
					next := now.Add(time.Minute)
					return func() { due = next }
				}
			},
			Decide: func(d *command.Decider, b command.Budget) {
				if ringing && !b.Spent() && d.MayRecord(events.KindToyRang) && s.Rang != s.Count {
					d.EmitRecord(&events.ToyRang{For: s.Count})
				}
				ringing = false
			},
			Note: func(ev *events.Event) { noted = noted || ev.Kind() == events.KindToyRang },
			Perform: func() {
				if noted {
					rang(s.Rang)
				}
				noted = false
			},
			Explain: func(t *projection.Task) (explanation.Explanation, bool) {
				text := "it waits until the bell has rung"
				return explanation.Explanation{Why: task.WhyWaiting, Text: text}, t.ID == "bell" && s.Rang != s.Count
			},
			Answer: func(c command.Command, _ events.Millis, _ command.Budget) (command.Found, bool) {
				if _, is := c.(*Ask); !is {
					return command.Found{}, false
				}
				count := int64(s.Count)
				return command.Found{Answer: func() command.Answer { return command.Answer{Number: count} }}, true
			},
		}
	}
}
