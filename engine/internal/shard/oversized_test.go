package shard_test

import (
	"errors"
	"fmt"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

// settled lets the owner, and those after it, take turns until every letter is answered: of an entry that cannot be
// stored nothing is, and senders repeat what is not answered.
func (b *fixture) settled(all ...*letter) {
	b.Helper()
	for tries := 0; ; tries++ {
		left := 0
		for _, l := range all {
			if len(l.got) == 0 {
				left++
				b.deliver(l)
			}
		}
		if left == 0 {
			return
		}
		if tries == 20 {
			b.Fatalf("%d batches are not answered", left)
		}
		if err := b.own.Turn(b.Context()); errors.Is(err, command.ErrDecideAnew) {
			b.takeOver()
		} else if err != nil {
			b.Fatal(err)
		}
		b.node.tasks.Wait()
	}
}

func TestOwner_RefusesABatchThatCannotBeStoredAndServesOn(t *testing.T) {
	const most = 6000
	b := newFixture(t)
	b.store.most = most
	submit := func(id events.TaskID, params int) *letter {
		c := submitOf(events.Policy{})
		c.Task, c.Params = id, payloadOf(params)
		return b.next("of "+string(id), command.LaneSubmit, c)
	}
	all := []*letter{submit("large", 2*most)}
	for i := range 9 { // too much for one entry together
		all = append(all, submit(events.TaskID(fmt.Sprintf("small-%d", i)), most/6))
	}
	b.settled(all...)
	for i, l := range all {
		want := command.AnswerOK
		if i == 0 {
			want = command.AnswerInvalid
		}
		if a := l.got[0][0]; a.Code != want || i == 0 && a.Text == "" {
			t.Errorf("batch %d: answer %+v", i, a)
		}
	}
	b.submit(events.Policy{})
	if b.own.State().Task("large") != nil || b.own.State().Len() != len(all) {
		t.Errorf("%d tasks, want %d", b.own.State().Len(), len(all))
	}
}

// A batch that a sender of another build makes too large is known by what its commands say that they take.
func TestOwner_RefusesABatchThatNoEntryHolds(t *testing.T) {
	b := newFixture(t)
	var commands []command.Command
	for i := range 4 {
		c := submitOf(events.Policy{})
		c.Task, c.Params = events.TaskID(fmt.Sprintf("large-%d", i)), payloadOf(events.MaxPayloadBytes)
		commands = append(commands, c)
	}
	l, small := b.next("c-1", command.LaneSubmit, commands...), b.next("c-2", command.LaneSubmit, submitOf(events.Policy{}))
	b.deliver(l)
	b.deliver(small)
	b.turn()
	b.turn()
	for i, a := range l.got[0] {
		if a.Code != command.AnswerInvalid {
			t.Errorf("command %d: answer %+v, want it refused", i, a)
		}
	}
	if len(small.got) != 1 || small.got[0][0].Code != command.AnswerOK || b.own.State().Len() != 1 {
		t.Errorf("the other batch: answers %+v, %d tasks", small.got, b.own.State().Len())
	}
}

// Two batches, each of which fits, do not fit together: they are decided in turn, and none is refused.
func TestOwner_DecidesBatchesApartThatDoNotFitTogether(t *testing.T) {
	b := newFixture(t)
	var all []*letter
	for i, n := range []int{1, 3} {
		var commands []command.Command
		for j := range n {
			c := submitOf(events.Policy{})
			c.Task, c.Params = events.TaskID(fmt.Sprintf("t-%d-%d", i, j)), payloadOf(200<<10)
			commands = append(commands, c)
		}
		all = append(all, b.next(fmt.Sprint("c-", i), command.LaneSubmit, commands...))
		b.deliver(all[i])
	}
	b.turn()
	b.turn()
	for i, l := range all {
		if len(l.got) != 1 || l.got[0][0].Code != command.AnswerOK {
			t.Errorf("batch %d: answers %+v", i, l.got)
		}
	}
	if b.sealed() != len(all) {
		t.Errorf("%d entries, want %d", b.sealed(), len(all))
	}
}
