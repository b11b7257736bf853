package engine

import (
	"log/slog"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/shard"
	"taskledger/store"
)

// An owner that is away for long must not find a heap of roll calls.
func TestRollCall_WaitsForTheAnswerToTheLastOne(t *testing.T) {
	p := newPost(t, 8, nil)
	of := p.offers
	busy := func(shard int) bool { return shard == 0 }
	if due := of.rollCallsDue(busy); len(due) != 1 {
		t.Fatalf("roll calls due are %v, want one", due)
	}
	of.ownerChanged(0)
	if due := of.rollCallsDue(busy); len(due) != 0 {
		t.Errorf("roll calls due are %v before the last one is answered", due)
	}
	of.rollCalled(0, false)
	await(t, of.calls, "a wake-up for the one that was due meanwhile")
	if due := of.rollCallsDue(func(int) bool { return false }); len(due) != 1 {
		t.Errorf("roll calls due are %v, want one", due)
	}
}

func TestRollCall_OfASessionThatIsOverIsNotSent(t *testing.T) {
	in := shard.NewInbox()
	s := sender.New(sender.Config{ID: "c-1", Shards: 1, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	s.ServeHere(0, in)
	m := &member{sender: s, offers: &offers{shards: make([]shardOffers, 1)}, exec: newExecutor(nil, 1, nil, time.Now, nil)}
	m.view.Store(&store.Membership{Owners: map[int]store.Owner{0: {Revision: 1}}})
	rolls := func() int {
		m.offers.shards[0].calling = 1
		m.callRoll(0, 7, func() {})
		return len(in.Take(&shard.Mail{}).Lanes[command.LaneWork])
	}
	m.over.Store(true)
	if n := rolls(); n != 0 || !m.offers.shards[0].rollCall {
		t.Errorf("%d roll calls without the attempts that were forgotten; to be repeated: %t", n, m.offers.shards[0].rollCall)
	}
	m.over.Store(false)
	if n := rolls(); n != 1 {
		t.Errorf("%d roll calls of a living session, want 1", n)
	}
}

// A node whose roll call was not answered calls again.
func TestRollCall_ThatIsRefusedCountsAsStale(t *testing.T) {
	p := newPost(t, -1, nil)
	p.view.Store(new(present(1, selfID, farID)))
	for _, code := range []command.AnswerCode{command.AnswerOverload, command.AnswerInvalid, command.AnswerStale} {
		s := &p.offers.shards[0]
		s.rollCall, s.calling = false, 1
		p.callRoll(0, 0, func() {})
		calls := p.inbox.Take(&shard.Mail{}).Lanes[command.LaneWork]
		for _, d := range calls {
			d.Reply(d.Batch, []command.Answer{{Code: code}}, true)
		}
		if !s.rollCall || len(calls) != 1 {
			t.Errorf("answer %d to %d roll calls: the roll call counts as made", code, len(calls))
		}
	}
}
