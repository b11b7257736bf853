package testcluster

import (
	"testing"

	"taskledger/events"
	"taskledger/store"
)

// Life returns a journal that begins with the life of a task: its attempt has told of its progress so many times. Each
// event has an entry.
func Life(t testing.TB, id events.TaskID, behavior, node string, progress int) (all []store.Record) {
	t.Helper()
	policy, err := events.Policy{}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	var b events.Builder
	before := events.Ref(0)
	for number := uint64(1); number <= uint64(progress)+2; number++ {
		body := events.Body(&events.Progressed{Done: int64(number)})
		switch number {
		case 1:
			body = &events.Created{Behavior: behavior, Policy: policy, NotBefore: 1}
		case 2:
			body = &events.Started{Node: node, Attempt: 1}
		}
		b.Reset(events.Entry{Number: number, Epoch: 1, Owner: "owner", Time: events.Millis(number), Prev: b.Entry.Hash})
		b.Add(events.Event{Task: id, Seq: number, Prev: before, Body: body})
		data, err := b.Seal()
		if err != nil {
			t.Fatal(err)
		}
		before = events.RefOf(number, 0)
		all = append(all, store.Record{Head: store.Head{Number: number, Revision: int64(number)}, Data: data})
	}
	return all
}
