package check_test

import (
	"testing"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// timed makes a task, in an entry of which it is known when it was committed, and lets it end.
func (b *builder) timed(id string) history.Life {
	b.record = func(r *history.Record) { r.At = b.clock }
	b.submit(id)
	made := history.Life{Task: id, Created: b.tasks[id].last}
	b.start(id, "n-1")
	b.succeed(id)
	return made
}

// lists acknowledges a list of a behavior, later than an owner can be one without knowing that it is none.
func (b *builder) lists(behavior string, told ...history.Life) *history.Operation {
	b.clock, b.now = b.clock+int64(time.Second), b.now.Add(time.Second)
	return b.op(history.Operation{Verb: history.List, Behavior: behavior, Listed: told}, nil)
}

var lists = []planted{
	{"a list that tells a task twice", "17 lists", func(b *builder) {
		a := b.timed("a")
		b.lists("", a, a)
	}, nil},
	{"a list that leaves a task out", "17 lists", func(b *builder) {
		a := b.timed("a")
		b.timed("b")
		b.lists("", a)
	}, nil},
	{"a list of a behavior that leaves its task out", "17 lists", func(b *builder) {
		b.timed("a")
		b.lists("work")
	}, nil},
	{"a list that tells a task of another behavior", "17 lists", func(b *builder) {
		b.lists("other", b.timed("a"))
	}, nil},
	{"a list that tells a life that was none", "17 lists", func(b *builder) {
		a := b.timed("a")
		b.lists("", a, history.Life{Task: "a", Created: a.Created + 1})
	}, nil},
}

func TestAll_KnowsWhatAListMayTell(t *testing.T) {
	b := newBuilder(t)
	a := b.timed("a")
	b.lists("", a)
	b.lists("other")
	gone := b.timed("b")
	b.lists("", gone, a)
	b.command(history.Delete, "b", &events.Deleted{})
	b.lists("", a)
	b.lists("", gone, a) // it was there, as one who began before tells
	b.timed("new")
	b.op(history.Operation{Verb: history.List, Listed: []history.Life{a}}, nil) // the owner may not know yet that it is none
	late := b.lists("", a)
	late.Answer, late.Return = history.Unknown, 0
	b.sound()
}
