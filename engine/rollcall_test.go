package engine

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/store"
)

// Counts of attempts at which the parts of a roll call begin and end.
var rollCallCounts = []int{0, 1, rollCallMost - 1, rollCallMost, rollCallMost + 1, 2 * rollCallMost, 3*rollCallMost + 1}

func TestRollCall_PartsAreBoundedAndCoverEveryStartOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var attempts []attemptName
		for i := range rapid.SampledFrom(rollCallCounts).Draw(t, "attempts") {
			attempts = append(attempts, attemptName{"x", events.RefOf(uint64(i/3), i%3)})
		}
		order := rapid.Uint64().Draw(t, "order")
		slices.SortFunc(attempts, func(a, b attemptName) int {
			return cmp.Compare(uint64(a.Started)*order, uint64(b.Started)*order)
		})
		parts := partsOfRollCall(rollCallCommand{Node: farID, Answered: 7}, slices.Clone(attempts))
		coverers := func(started events.Ref) (all []*rollCallCommand) {
			for _, c := range parts {
				if c.covers(started) {
					all = append(all, c)
				}
			}
			return all
		}
		listed := 0
		for _, c := range parts {
			if listed += len(c.Attempts); len(c.Attempts) > rollCallMost || c.Node != farID || c.Answered != 7 {
				t.Fatalf("part lists %d attempts of %q, answered %d", len(c.Attempts), c.Node, c.Answered)
			}
		}
		if listed != len(attempts) {
			t.Fatalf("%d attempts are listed, want %d", listed, len(attempts))
		}
		for _, a := range attempts {
			if by := coverers(a.Started); len(by) != 1 || !slices.Contains(by[0].Attempts, a) {
				t.Fatalf("attempt %x is covered by %d parts, or not listed by the one that covers it", a.Started, len(by))
			}
		}
		for _, bound := range []events.Ref{0, events.Ref(rapid.Uint64().Draw(t, "any")), 1<<64 - 1} {
			if by := coverers(bound); len(by) != 1 {
				t.Fatalf("%x is covered by %d parts", bound, len(by))
			}
		}
	})
}

// crowd lets a node run as many tasks as asked for, all by its offer 1, and returns their attempts as they started.
func crowd(t *testing.T, n int) (*journalDriver, []attemptName) {
	const perEntry = 1000
	l := newJournalDriver(t)
	for first := 0; first < n; first += perEntry {
		l.entry(func(d *decider) {
			for i := first; i < min(first+perEntry, n); i++ {
				c := submitOf(Policy{})
				c.Task = events.TaskID(fmt.Sprint("task", i))
				d.decide(c)
				d.start(d.state.Task(c.Task), farID, 1, time.Second)
			}
		})
	}
	var attempts []attemptName
	for task := range l.state.Running(farID) {
		attempts = append(attempts, nameOf(*task))
	}
	slices.SortFunc(attempts, func(a, b attemptName) int { return cmp.Compare(a.Started, b.Started) })
	if len(attempts) != n {
		t.Fatalf("%d attempts run, want %d", len(attempts), n)
	}
	return l, attempts
}

func TestRollCall_OfManyAttemptsReleasesExactlyTheMissingOne(t *testing.T) {
	const n = 2*rollCallMost + 2
	for _, i := range []int{0, 1, rollCallMost - 1, rollCallMost, rollCallMost + 1, 2*rollCallMost - 1, 2 * rollCallMost, n - 1} {
		l, attempts := crowd(t, n)
		missing := attempts[i]
		for _, c := range partsOfRollCall(rollCallCommand{Node: farID, Answered: 1}, slices.Delete(attempts, i, i+1)) {
			var over []attemptName
			kinds := l.entry(func(d *decider) { over, _ = d.rollCall(c, selfID, 1) })
			var want []string
			if c.covers(missing.Started) {
				want = []string{"Released"}
			}
			if !slices.Equal(kinds, want) || len(over) > 0 {
				t.Fatalf("without attempt %d the part from %x to %x leads to %v, over are %v", i, c.From, c.To, kinds, over)
			}
		}
		if got := l.state.Task(missing.Task); got.Phase() != projection.Waiting {
			t.Fatalf("task of attempt %d is %s, want released", i, got.Phase())
		}
	}
}

// The largest part, and its answer when every attempt is over, must pass the limits of batch, answer and entry.
func TestRollCall_LargestPartFitsBatchAndEntry(t *testing.T) {
	long := make([]byte, events.MaxIDBytes)
	for i := range long {
		long[i] = 'x'
	}
	var attempts []attemptName
	for i := range rollCallMost {
		attempts = append(attempts, attemptName{events.TaskID(long), events.RefOf(1<<40, i)})
	}
	c := partsOfRollCall(rollCallCommand{Node: farID, Answered: 1}, attempts)[0]
	const others = maxBatchBytes // of the batch that it comes with
	if got := others + c.size(); got > maxAnswerBytes {
		t.Errorf("batch of %d bytes, want at most %d", got, maxAnswerBytes)
	}
	if got := others + c.size() + events.SealEntryBytes; got > events.MaxEntryBytes {
		t.Errorf("entry of %d bytes, want at most %d", got, events.MaxEntryBytes)
	}
}

// An owner that is away for long must not find a heap of roll calls.
func TestRollCall_WaitsForTheAnswerToTheLastOne(t *testing.T) {
	b := newBench(t, 8)
	of := b.m.offers
	busy := func(int) bool { return true }
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

// An entry takes no more releases. Nobody would call again for the rest, so the command itself comes again.
func TestRollCall_ThatFillsAnEntryComesAgainForTheRest(t *testing.T) {
	l := newJournalDriver(t)
	const n = 4000
	for first := 0; first < n; first += 500 {
		l.entry(func(d *decider) {
			for i := range 500 {
				c := submitOf(Policy{})
				c.Task = events.TaskID(fmt.Sprintf("%0*d", events.MaxIDBytes, first+i))
				d.decide(c)
				d.start(d.state.Task(c.Task), farID, 1, time.Second)
			}
		})
	}
	for calls := 1; ; calls++ {
		var all bool
		l.entry(func(d *decider) { _, all = d.rollCall(&rollCallCommand{Node: farID, Answered: 1}, selfID, 1) })
		if all {
			if calls < 2 {
				t.Error("all were released by one entry: the test shows nothing")
			}
			break
		}
	}
	for task := range l.state.Running(farID) {
		t.Fatalf("task %s still runs", task.ID)
	}
}

// The node has given an offer up whose copy, or whose parking, is still with the owner. Filled, it would bring an attempt
// that the node drops and nobody asks for.
func TestRollCall_ClosesTheOffersThatItCountsAsAnswered(t *testing.T) {
	b := newBench(t, -1)
	parked, late := b.offer(), b.offer()
	b.deliver(parked)
	b.turn()
	b.deliver(b.next(parked.batch.sender, laneWork,
		&rollCallCommand{Node: farID, Epoch: b.own.ownership.Revision, Answered: late.batch.number}))
	b.turn()
	b.deliver(late)
	b.turn()
	b.submit(Policy{})
	if got := b.task(); got.OnNode() {
		t.Errorf("task answers offer %d, which its node has given up", got.Offer)
	}
	b.assign()
}

func TestRollCall_OfASessionThatIsOverIsNotSent(t *testing.T) {
	w := newWaiters(t)
	m := &member{router: w.router, offers: &offers{shards: make([]shardOffers, 1)}, exec: newExecutor(nil, 1, nil, time.Now, nil)}
	m.view.Store(&store.Membership{Owners: map[int]store.Owner{0: {Revision: 1}}})
	rolls := func() int {
		m.offers.shards[0].calling = 1
		m.callRoll(0, 7, func() {})
		mail := w.inbox.take(&mail{})
		return len(mail.lanes[laneWork])
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
