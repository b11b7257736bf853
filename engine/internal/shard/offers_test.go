package shard_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// roll lets a node call its roll and returns the attempts that the owner says are over.
func (b *fixture) roll(c *command.Reconcile) []command.AttemptName {
	b.Helper()
	c.Epoch = b.own.Ownership().Revision
	a := b.ask(command.LaneWork, c)
	over, err := command.DecodeNames(a.Data)
	if err != nil || a.Code != command.AnswerOK {
		b.Fatalf("reconciliation is answered %+v: %v", a, err)
	}
	return over
}

func nameOf(t projection.Task) command.AttemptName {
	return command.AttemptName{Task: t.ID, Started: t.Started}
}

// The owner commits Started and dies before the assignment leaves it. The node's offer is still open and comes again.
func TestOffer_AssignmentOutlivesTheOwnerThatMadeIt(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	offer, task := b.assign()
	b.takeOver()
	offer.got = nil
	b.deliver(offer)
	b.turn()
	if len(offer.got) != 1 {
		t.Fatalf("offer is answered %+v, want the assignment", offer.got)
	}
	if given := b.given(offer.got[0]); len(given) != 1 || given[0].AttemptName != nameOf(task) {
		t.Errorf("offer is answered %+v, want attempt %+v", given, nameOf(task))
	}
	if n := b.count(events.KindStarted); n != 1 {
		t.Errorf("%d attempts were started, want 1", n)
	}
}

func TestOffer_AnsweredAgainBySameOwnerIsTheSameAssignment(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	offer, task := b.assign()
	b.deliver(offer)
	b.turn()
	if len(offer.got) != 3 || offer.got[0] != nil {
		t.Fatalf("offer is answered %+v, want an acknowledgement and twice the assignment", offer.got)
	}
	for _, answers := range offer.got[1:] {
		if given := b.given(answers); len(given) != 1 || given[0].AttemptName != nameOf(task) {
			t.Errorf("offer is answered %+v, want attempt %+v", given, nameOf(task))
		}
	}
	if n := b.count(events.KindStarted); n != 1 {
		t.Errorf("%d attempts were started, want 1", n)
	}
}

// The attempt has ended when the offer comes again: the node must not run it a second time.
func TestOffer_AnsweredAgainAfterItsAttemptEndedBringsNothing(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	offer, task := b.assign()
	b.accept(command.LaneWork, report(task, command.Succeeded))
	b.takeOver()
	offer.got = nil
	b.deliver(offer)
	b.turn()
	if len(offer.got) != 1 || len(b.given(offer.got[0])) != 0 {
		t.Errorf("offer is answered %+v, want nothing to run", offer.got)
	}
}

// Its attempt started with other parameters than the task has now. With those it was merged with it starts after a
// reconciliation.
func TestOffer_AnsweredAgainLeavesOutWhatWasMergedSince(t *testing.T) {
	for name, between := range map[string]func(b *fixture){"SameOwner": func(*fixture) {}, "NextOwner": (*fixture).takeOver} {
		b := newFixture(t)
		b.submit(events.Policy{})
		offer, task := b.assign() // whose answer is lost
		merge := &command.Merge{Submit: *submitOf(events.Policy{}), Life: task.Created, Seq: task.Seq}
		merge.Submit.Params = events.JSON([]byte(`"later"`))
		b.accept(command.LaneSubmit, merge)
		between(b)
		offer.got = nil
		b.deliver(offer)
		b.turn()
		if len(offer.got) != 1 {
			t.Fatalf("%s: answers are %+v, want one", name, offer.got)
		}
		if given := b.given(offer.got[0]); len(given) != 0 {
			t.Errorf("%s: an attempt started before the merge is given %s", name, given[0].Params)
		}
		b.roll(&command.Reconcile{Node: farID, Answered: offer.batch.Number})
		if got := b.task(); got.OnNode() {
			t.Errorf("%s: the attempt that nobody got is not released", name)
		}
		_, again := b.assign()
		if again.Attempt != 2 || string(again.Params) != string(merge.Submit.Params) {
			t.Errorf("%s: attempt %d has %s", name, again.Attempt, again.Params)
		}
	}
}

// A later offer closes the earlier one, which is answered with nothing and never filled, not even by a late copy.
func TestOffer_LaterOneClosesTheEarlier(t *testing.T) {
	b := newFixture(t)
	early, late := b.offer(), b.offer()
	b.deliver(early)
	b.deliver(late)
	b.deliver(early)
	b.turn()
	b.submit(events.Policy{})
	if len(early.got) != 2 || early.got[0] != nil || len(b.given(early.got[1])) != 0 {
		t.Errorf("earlier offer is answered %+v, want an acknowledgement and nothing to run", early.got)
	}
	if task := b.task(); task.Offer != late.batch.Number {
		t.Errorf("task answers offer %d, want %d", task.Offer, late.batch.Number)
	}
	if given := b.given(late.got[len(late.got)-1]); len(given) != 1 {
		t.Errorf("later offer is answered %+v, want one attempt", late.got)
	}
}

func TestOffer_LetterOfOneThatIsClosedIsRemoved(t *testing.T) {
	for name, close := range map[string]func(*fixture){
		"by a later one": func(b *fixture) { b.deliver(b.offer()) },
		"by a reconciliation": func(b *fixture) {
			b.deliver(b.next("far sender", command.LaneWork, &command.Reconcile{Node: farID, Epoch: b.own.Ownership().Revision, Answered: 1}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			late := b.offer()
			close(b)
			b.turn()
			b.post(late)
			b.turn()
			if len(late.got) != 1 || late.got[0] == nil {
				t.Errorf("answers to the letter are %+v, want one that removes it", late.got)
			}
			before := len(late.got)
			b.deliver(late)
			b.turn()
			if len(late.got) != before {
				t.Errorf("answers to what came over the bus are %+v, want none", late.got[before:])
			}
		})
	}
}

// No answer ever reached the node. It closed the offer with a later one, and does not know the attempt.
func TestReconcile_ReleasesAnAssignmentThatNeverArrived(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	offer, _ := b.assign()
	b.roll(&command.Reconcile{Node: farID, Answered: offer.batch.Number})
	if got := b.task(); got.Phase() != projection.Waiting || got.Lost != 0 {
		t.Errorf("task is %s, lost %d times; want released", got.Phase(), got.Lost)
	}
	if n := b.count(events.KindReleased); n != 1 {
		t.Errorf("%d times Released, want 1", n)
	}
	b.assign()
}

// The answer is slow, however slow: nobody but the node, or the end of its session, takes the attempt away from it.
func TestReconcile_LeavesAnAssignmentUnderWay(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	offer, task := b.assign()
	b.roll(&command.Reconcile{Node: farID, Answered: offer.batch.Number - 1})
	if got := b.task(); nameOf(got) != nameOf(task) || !got.OnNode() {
		t.Errorf("task is %s, attempt %+v; want still attempt %+v", got.Phase(), nameOf(got), nameOf(task))
	}
}

func TestReconcile_LeavesWhatTheNodeKnows(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	offer, task := b.assign()
	over := b.roll(&command.Reconcile{Node: farID, Attempts: []command.AttemptName{nameOf(task)}, Answered: offer.batch.Number})
	if got := b.task(); !got.OnNode() || len(over) != 0 {
		t.Errorf("task is %s, over are %+v; want it running", got.Phase(), over)
	}
}

// An owner on this node committed Started for the node itself, and lost the shard before it could call the function.
func TestReconcile_ReleasesALocalStartOfAnEarlierOwner(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.localStart()
	b.roll(&command.Reconcile{Node: selfID})
	if got := b.task(); !got.OnNode() {
		t.Fatalf("task is %s: an owner must not doubt what it started itself", got.Phase())
	}
	b.takeOver()
	b.roll(&command.Reconcile{Node: selfID})
	if got := b.task(); got.Phase() != projection.Waiting {
		t.Errorf("task is %s, want released", got.Phase())
	}
}

// localStart commits a Started on the owner's node, as assign does, whose effect is never performed.
func (b *fixture) localStart() {
	b.Helper()
	if err := b.own.StartHere(b.Context(), "x", b.time); err != nil {
		b.Fatalf("start on the owner's node: %v", err)
	}
}

// The node called the roll, then served the shard itself for a while and started the task, then handed the shard
// over. The reconciliation, sent again to the next owner, knows nothing of the attempt, which runs.
func TestReconcile_ForAnEarlierOwnerReleasesNothing(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.localStart()
	late := &command.Reconcile{Node: selfID, Epoch: b.own.Ownership().Revision}
	b.epoch++
	b.takeOver()
	if a := b.ask(command.LaneWork, late); a.Code != command.AnswerStale {
		t.Errorf("reconciliation is answered %+v, want stale", a)
	}
	if got := b.task(); !got.OnNode() {
		t.Errorf("task is %s, want it running", got.Phase())
	}
}

func TestReconcile_NamesWhatIsOver(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, first := b.assign()
	b.accept(command.LaneWork, report(first, command.Succeeded))
	stranger := command.AttemptName{Task: "nobody", Started: events.RefOf(7, 0)}
	over := b.roll(&command.Reconcile{Node: farID, Attempts: []command.AttemptName{nameOf(first), stranger}})
	if len(over) != 2 || over[0] != nameOf(first) || over[1] != stranger {
		t.Errorf("over are %+v, want both", over)
	}
}

// The cancel overtook the assignment on another way and found nothing to cancel. The reconciliation brings it again.
func TestReconcile_RepeatsACancelThatCameTooEarly(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	offer, task := b.assign()
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel})
	over := b.roll(&command.Reconcile{Node: farID, Attempts: []command.AttemptName{nameOf(task)}, Answered: offer.batch.Number})
	if len(over) != 1 || over[0] != nameOf(task) {
		t.Errorf("over are %+v, want the cancelled attempt", over)
	}
	if got := b.task(); !got.OnNode() {
		t.Errorf("task is %s: its end is for the node to report", got.Phase())
	}
}

// The same node keeps a name for another attempt of the task: names must not be confused.
func TestReconcile_AttemptOfAnotherLifeIsOver(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, first := b.assign()
	b.accept(command.LaneWork, report(first, command.Succeeded))
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoDelete})
	b.submit(events.Policy{})
	offer, second := b.assign()
	over := b.roll(&command.Reconcile{Node: farID, Attempts: []command.AttemptName{nameOf(first)}, Answered: offer.batch.Number})
	if len(over) != 1 || over[0] != nameOf(first) {
		t.Errorf("over are %+v, want the attempt of the first life", over)
	}
	if got := b.task(); got.OnNode() && nameOf(got) == nameOf(second) {
		t.Error("the second attempt was answered for by the first")
	}
}

// An offer that comes while the session may be over is taken once it was renewed, though nothing else makes the
// owner turn.
func TestOwner_ComesAgainForWhatItMayNotStart(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	offer := b.offer()
	b.deliver(offer)
	b.node.old = true
	b.turn()
	if wait, comes := b.own.UntilDue(); len(offer.got) > 0 && len(offer.got[0]) > 0 || !comes || wait > shard.MayStartAgain {
		t.Fatalf("the offer is answered with %+v, and the owner comes again (%t) in %s", offer.got, comes, wait)
	}
	b.node.old = false
	b.turn()
	if got := b.own.State().Task("x"); got.Status != task.Running {
		t.Errorf("the task is %s", got.Status)
	}
	if wait, comes := b.own.UntilDue(); comes && wait <= shard.MayStartAgain {
		t.Errorf("with nothing to start it comes again in %s", wait)
	}
}

// The node has given an offer up whose copy, or whose parking, is still with the owner. Filled, it would bring an
// attempt that the node drops and nobody asks for.
func TestReconcile_ClosesTheOffersThatItCountsAsAnswered(t *testing.T) {
	b := newFixture(t)
	parked, late := b.offer(), b.offer()
	b.deliver(parked)
	b.turn()
	b.deliver(b.next(parked.batch.Sender, command.LaneWork,
		&command.Reconcile{Node: farID, Epoch: b.own.Ownership().Revision, Answered: late.batch.Number}))
	b.turn()
	b.deliver(late)
	b.turn()
	b.submit(events.Policy{})
	if got := b.task(); got.OnNode() {
		t.Errorf("task answers offer %d, which its node has given up", got.Offer)
	}
	b.assign()
}

// An offer of the very number that a reconciliation counts as answered is closed, too.
func TestReconcile_ClosesTheLastOfferThatItCountsAsAnswered(t *testing.T) {
	b := newFixture(t)
	parked := b.offer()
	b.deliver(parked)
	b.turn()
	b.deliver(b.next(parked.batch.Sender, command.LaneWork,
		&command.Reconcile{Node: farID, Epoch: b.own.Ownership().Revision, Answered: parked.batch.Number}))
	b.turn()
	b.submit(events.Policy{})
	if got := b.task(); got.OnNode() {
		t.Errorf("task answers offer %d, which its node has given up", got.Offer)
	}
	b.assign()
}
