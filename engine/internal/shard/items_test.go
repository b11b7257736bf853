package shard_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/engine/internal/stores"
	"taskledger/events"
	"taskledger/item"
	"taskledger/meter"
	"taskledger/store"
)

// itemsOf makes an update of store s.
func itemsOf(u *item.Update) command.Command {
	if u.Client == 0 {
		u.Client = 1
	}
	return stores.UpdateOf("s", u)
}

// claimOf is a claim of an hour by client 2.
func claimOf(group string) command.Command {
	return stores.ClaimOf("s", &item.Claim{Client: 2, Group: group, Duration: time.Hour}, 7)
}

func (b *fixture) addItem(group string, at item.When) int64 {
	b.Helper()
	u := &item.Update{Adds: []item.Add{{Group: group, At: at, Data: []byte("data")}}}
	a := b.ask(command.LaneSubmit, itemsOf(u))
	if a.Code != command.AnswerOK {
		b.Fatalf("answer %+v", a)
	}
	u.Client = 1
	made, err := stores.DecodeUpdated(u, a.Data)
	if err != nil {
		b.Fatal(err)
	}
	return made[0].ID
}

// While the store is almost full, what makes it smaller or no larger goes on.
func TestItems_WithoutAdmissionOnlyWhatAddsIsRefused(t *testing.T) {
	b := newFixture(t)
	one, two := b.addItem("g", 1), b.addItem("g", 1)
	refusal := "the store is 80 % full"
	b.node.refusal = refusal
	data := []byte("data")
	for _, row := range []struct {
		name    string
		ask     command.Command
		refused bool
	}{
		{"an add", itemsOf(&item.Update{Adds: []item.Add{{Group: "g"}}}), true},
		{"larger data", itemsOf(&item.Update{Changes: []item.Change{{ID: one, Data: append(data, 'x')}}}), true},
		{"a check", itemsOf(&item.Update{Depends: []int64{one}}), false},
		{"an add for a delete", itemsOf(&item.Update{Deletes: []int64{two}, Adds: []item.Add{{Group: "g", At: 1, Data: data}}}), false},
		{"data of the same size", itemsOf(&item.Update{Changes: []item.Change{{ID: one, At: 1, Data: data}}}), false},
		{"a claim", claimOf("g"), false},
		{"a delete", itemsOf(&item.Update{Client: 2, Deletes: []int64{3}}), false},
	} {
		a := b.ask(command.LaneSubmit, row.ask)
		if refused := a.Code == command.AnswerOverload; refused != row.refused || refused && a.Text != refusal || !refused && a.Code != command.AnswerOK {
			t.Errorf("%s: answer %+v, want it refused: %t", row.name, a, row.refused)
		}
	}
	b.node.refusal = ""
	b.addItem("g", 1)
	b.node.usage.Full = true
	for _, c := range []command.Command{claimOf("g"), itemsOf(&item.Update{Adds: []item.Add{{Group: "g"}}})} {
		if a := b.ask(command.LaneSubmit, c); a.Code != command.AnswerOverload || a.Text != command.StoreFull {
			t.Errorf("%T in a full store: %+v", c, a)
		}
	}
	if a := b.ask(command.LaneSubmit, itemsOf(&item.Update{Depends: []int64{99}})); a.Code != command.AnswerConflict {
		t.Errorf("a check in a full store: %+v", a)
	}
}

// A node of the release before would not be able to read the journal.
func TestItems_AreRefusedByTheNameOfANodeThatCannotReadThem(t *testing.T) {
	b := newFixture(t)
	old := b.store.members.Nodes[farID]
	old.Reads.Kind, old.Name = events.KindItemAdded-1, "old"
	b.store.members.Nodes[farID] = old
	a := b.ask(command.LaneSubmit, itemsOf(&item.Update{Adds: []item.Add{{Group: "g"}}}))
	if a.Code != command.AnswerState || !strings.Contains(a.Text, "old") || b.sealed() != 0 {
		t.Errorf("answer %+v, %d entries", a, b.sealed())
	}
	if a := b.ask(command.LaneSubmit, claimOf("g")); a.Code != command.AnswerOK || a.Data != nil {
		t.Errorf("a claim of nothing: %+v", a)
	}
}

func TestItems_CommandSentAgainIsDecidedOnceAlsoByTheNextOwner(t *testing.T) {
	b := newFixture(t)
	b.addItem("g", 1)
	b.addItem("g", 1)
	l := b.next("c-1", command.LaneSubmit, claimOf("g"))
	b.deliver(l)
	b.turn()
	b.deliver(l)
	b.turn()
	b.takeOver()
	b.deliver(l)
	b.turn()
	if len(l.got) != 3 || b.count(events.KindItemReplaced) != 1 {
		t.Fatalf("%d answers, %d claims", len(l.got), b.count(events.KindItemReplaced))
	}
	for _, answers := range l.got {
		it, whole, err := stores.DecodeClaimed(&item.Claim{Group: "g", Client: 2, Duration: time.Hour}, answers[0].Data)
		if err != nil || it.ID != 3 || !whole || string(it.Data) != "data" {
			t.Errorf("claimed %+v, whole %t, %v", it, whole, err)
		}
	}
	e, err := events.Decode(b.store.entries[2])
	if err != nil {
		t.Fatal(err)
	}
	if n := len(e.Origins[0].Answers); n > 60 {
		t.Errorf("the entry has %d bytes of answers: it holds the data already", n)
	}
}

func TestItems_ARepetitionAgesWhileItsBatchIsUnderWay(t *testing.T) {
	for way, want := range map[time.Duration]command.AnswerCode{0: command.AnswerOK, 20 * time.Minute: command.AnswerForgotten} {
		b := newFixture(t)
		u := &item.Update{Key: "k", Age: 50 * time.Minute, Adds: []item.Add{{Group: "g"}}}
		l := b.next("c-1", command.LaneSubmit, itemsOf(u))
		l.batch.Made = b.time.Add(-way)
		b.deliver(l)
		b.turn()
		if a := l.got[0][0]; a.Code != want {
			t.Errorf("%s under way: answer %+v, want code %d", way, a, want)
		}
	}
}

// The gauges of items follow what was committed, and the time at which what waits falls due.
func TestItems_AreCountedForGauges(t *testing.T) {
	b := newFixture(t)
	want := func(when string, available, waiting, claimed int64) {
		t.Helper()
		v := b.own.Vitals()
		if a, w, c := v.Gauges[meter.ItemsAvailable], v.Gauges[meter.ItemsWaiting], v.Gauges[meter.ItemsClaimed]; a != available || w != waiting || c != claimed {
			t.Errorf("%s: %d available, %d waiting, %d claimed; want %d, %d, %d", when, a, w, c, available, waiting, claimed)
		}
	}
	b.addItem("g", 1)
	b.addItem("h", 1)
	b.addItem("g", -3_600_000)
	want("added", 2, 1, 0)
	b.accept(command.LaneSubmit, claimOf("g"))
	want("claimed", 1, 1, 1)
	b.takeOver()
	want("taken over", 1, 1, 1)
	b.time += 3_600_000 + 60_000 // while the wall clock stands still, the time of a shard goes on
	b.turn()
	want("due", 3, 0, 0)
}

// What waits elsewhere is told when an item is added, released or falls due, once for each, and not before its
// entry is committed.
func TestItems_OwnerTellsWhoWaitsOfWhatComes(t *testing.T) {
	synctest.Test(t, testItems_OwnerTellsWhoWaitsOfWhatComes) // the time of a shard goes on with the monotonic clock
}

func testItems_OwnerTellsWhoWaitsOfWhatComes(t *testing.T) {
	b := newFixture(t)
	register := func(sender string, n int64) stores.Awaited {
		a, err := stores.DecodeAwaited(b.ask(command.LaneQuery, &stores.Await{Store: "s", Group: "g", Sender: sender, Count: n}).Data)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	told := func(when string, want ...string) {
		t.Helper()
		got := b.node.hints
		slices.Sort(got)
		b.node.hints = nil
		if !slices.Equal(got, want) {
			t.Errorf("%s: told %q, want %q", when, got, want)
		}
	}
	if a := register("c-1", 2); a.Available != 0 || a.DueIn != -1 {
		t.Errorf("of nothing: %+v", a)
	}
	register("c-2", 1)
	b.addItem("other", 1)
	told("another group")
	b.store.commit = func() { told("before the commit") }
	b.addItem("g", 1)
	b.store.commit = nil
	told("added", "c-1")
	b.accept(command.LaneSubmit, claimOf("g")) // 3
	held := b.addItem("g", -3_600_000)
	told("held")
	if a := register("c-3", 1); a.Available != 0 || a.DueIn != 3_600_000 {
		t.Errorf("of what is held: %+v", a)
	}
	b.accept(command.LaneSubmit, itemsOf(&item.Update{Changes: []item.Change{{ID: held, At: 1, Keep: true}}}))
	told("released", "c-2")
	b.accept(command.LaneSubmit, claimOf("g"))
	b.time += 3_600_000
	b.turn()
	told("two fell due", "c-1", "c-3")
	if a := register("c-4", 1); a.Available != 2 || a.DueIn != -1 {
		t.Errorf("of what is there: %+v", a)
	}
}

// Whether any work is left is for the owner alone to say: one that was replaced and does not know tells nothing to
// who asks for a proof.
func TestItems_LinearAnswersOfAnOwnerThatWasReplacedAreNotTold(t *testing.T) {
	b := newFixture(t)
	id := b.addItem("g", 1)
	for _, linear := range []bool{false, true} {
		for name, c := range map[string]command.Command{
			"items":  &stores.Read{Store: "s", IDs: []int64{id}, Linear: linear},
			"page":   &stores.Page{Store: "s", Group: "g", Linear: linear},
			"groups": &stores.Groups{Store: "s", Linear: linear},
		} {
			asked, is := stores.IsQuestion(c)
			if !is || asked != linear {
				t.Fatalf("%s: linear %t, a question %t", name, asked, is)
			}
			b.own.LookAnew()
			mine := b.store.members.Owners[0]
			b.store.members.Owners[0] = store.Owner{Node: farID, Revision: b.own.Ownership().Revision + 1}
			a, later := b.own.Answer(c)
			if later != nil {
				a = later(t.Context())
			}
			if told := a.Code == command.AnswerOK; told == linear || linear && a.Code != command.AnswerTryAgain {
				t.Errorf("%s, linear %t: answer %+v", name, linear, a)
			}
			b.store.members.Owners[0] = mine
			if _, later = b.own.Answer(c); later != nil && later(t.Context()).Code != command.AnswerOK {
				t.Errorf("%s: not told by the owner itself", name)
			}
		}
	}
}

// An item that was available stays so when the wall clock is set back: what becomes of it is recorded after it came
// to be so.
func TestItems_ThatWereAvailableStaySoWhenTheClockIsSetBack(t *testing.T) {
	b := newFixture(t)
	due := b.time + 60_000
	b.addItem("g", item.When(due))
	if a := b.ask(command.LaneSubmit, claimOf("g")); a.Code != command.AnswerOK || a.Data != nil {
		t.Fatalf("a claim before the time: %+v", a)
	}
	b.time = due
	b.turn()
	b.time -= 60_000
	if a := b.ask(command.LaneSubmit, claimOf("g")); a.Code != command.AnswerOK || a.Data == nil {
		t.Errorf("a claim after the clock was set back: %+v", a)
	}
	if n := b.count(events.KindItemReplaced); n != 1 {
		t.Errorf("%d claims are recorded, want 1", n)
	}
}

// However many ask about items, and whatever they ask, an owner's turn looks at a bounded number of items and encodes
// a bounded number of bytes; who was not looked at asks again.
func TestItems_QuestionsOfOneTurnShareItsBudget(t *testing.T) {
	synctest.Test(t, testItems_QuestionsOfOneTurnShareItsBudget) // no time passes, which has a budget of its own
}

func testItems_QuestionsOfOneTurnShareItsBudget(t *testing.T) {
	const held, each = 3 * shard.LookTasks, 1000
	b := newFixture(t)
	for range held / each {
		u := &item.Update{}
		for range each {
			u.Adds = append(u.Adds, item.Add{Group: "held", At: -1_000_000})
		}
		b.ask(command.LaneSubmit, itemsOf(u))
	}
	for range 4 {
		u := &item.Update{Adds: []item.Add{{Group: "large", Data: make([]byte, 250<<10)}}}
		b.ask(command.LaneSubmit, itemsOf(u))
	}
	pages := func(group string, linear bool, n int) (all []command.Command) {
		for range n {
			all = append(all, stores.PageOf("s", item.Page{Group: group, Linear: linear}))
		}
		return all
	}
	for name, row := range map[string]struct {
		asked []command.Command
		most  int // answers; 0 = they come later
	}{
		"held":                {pages("held", false, 50), 1},
		"held and linear":     {pages("held", true, 50), 0},
		"of much data":        {pages("large", false, 50), 2},
		"of much linear data": {pages("large", true, 50), 0},
		"of groups":           {slices.Repeat([]command.Command{&stores.Groups{Store: "s"}}, 2048), 2048},
	} {
		l := b.next("reader", command.LaneQuery, row.asked...)
		b.deliver(l)
		b.turn()
		looked, bytes := b.own.Looked()
		if bytes > shard.LookBytes+command.MaxAnswerBytes || looked > shard.LookTasks || looked == 0 {
			t.Errorf("%s: a turn looked at %d items, for %d bytes", name, looked, bytes)
		}
		if row.most == 0 {
			continue // they are answered when it is proven that the shard still is this owner's
		}
		answered := 0
		for _, a := range l.got[0] {
			if a.Code == command.AnswerOK {
				answered++
			}
		}
		if answered == 0 || answered > row.most {
			t.Errorf("%s: %d of %d were answered, want 1 to %d", name, answered, len(row.asked), row.most)
		}
	}
}
