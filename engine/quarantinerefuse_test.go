package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

// A write may still land that was under way when the damage was met. While the quarantine cannot begin, what such a
// write may hold is not turned down, nor is a letter, whose answer needs room.
func TestQuarantine_WhileEtcdIsFullNothingIsTurnedDownThatMayBeDecided(t *testing.T) {
	p := newPost(t)
	members := &roster{now: present(1, selfID)}
	members.now.Written = ledger.Reads()
	p.members, p.loader.Journal = members, brokenJournal{}
	p.view.Store(&members.now)
	own := p.owning(0)
	got := map[string][]command.Answer{}
	deliver := func(sender string, letter bool) {
		policy, err := task.Policy{}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		own.Inbox().Deliver(shard.Delivery{
			Batch: &command.Batch{
				Sender:    sender,
				Lane:      command.LaneSubmit,
				Number:    1,
				Made:      p.now(),
				Principal: sender,
				Commands:  []command.Command{&command.Submit{Task: "d", Behavior: workBehavior, Policy: policy}},
			},
			Stored: letter,
			Reply:  func(b *command.Batch, a []command.Answer, _ bool) { got[b.Sender] = append(got[b.Sender], a...) },
		})
	}
	deliver("tried", false)
	if err := own.Run(t.Context()); !errors.Is(err, events.ErrDamaged) {
		t.Fatalf("the owner ended with %v, want the damage", err)
	}
	q := newQuarantine(p.place, own.Ownership(), own)
	why := "damaged"
	q.why.Store(&why)
	p.admission.usage.Store(&store.Usage{Full: true})
	deliver("posted", true)
	deliver("fresh", false)
	rest := q.refuse(t.Context(), q.inbox.Take(&shard.Mail{}).Lanes[command.LaneSubmit])
	p.tasks.Wait()
	if len(rest) != 2 || len(got["tried"]) != 0 || len(got["posted"]) != 0 {
		t.Errorf("%d wait, told %+v and %+v; want two, and nothing", len(rest), got["tried"], got["posted"])
	}
	if told := got["fresh"]; len(told) != 1 || told[0].Code != command.AnswerUnserved {
		t.Errorf("what no write can hold was told %+v", told)
	}
}

// brokenJournal is a journal of which no write tells whether it has landed.
type brokenJournal struct{ store.Journal }

// Append implements store.Journal.
func (brokenJournal) Append(context.Context, store.Ownership, store.Head, []byte) (int64, error) {
	return 0, events.ErrDamaged
}

// Until it begins, a quarantine keeps the latest batch of each sender and way.
func TestLatest_KeepsOneForEachSenderAndWay(t *testing.T) {
	of := func(sender string, number uint64, letter bool) shard.Delivery {
		return shard.Delivery{Batch: &command.Batch{Sender: sender, Number: number}, Stored: letter}
	}
	var all []shard.Delivery
	for _, d := range []shard.Delivery{of("a", 2, false), of("a", 1, false), of("a", 2, true), of("b", 7, false), of("a", 3, false), of("b", 7, false)} {
		all = latest(all, d)
	}
	var got []uint64
	for _, d := range all {
		got = append(got, d.Number)
	}
	if want := []uint64{3, 2, 7}; !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
}
