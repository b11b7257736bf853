package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/store"
)

// roll lets a node call its roll and returns the attempts that the owner says are over.
func (b *bench) roll(c *command.Reconcile) []command.AttemptName {
	b.Helper()
	c.Epoch = b.own.ownership.Revision
	a := b.ask(command.LaneWork, c)
	over, err := command.DecodeNames(a.Data)
	if err != nil || a.Code != command.AnswerOK {
		b.Fatalf("roll call is answered %+v: %v", a, err)
	}
	return over
}

func nameOf(t projection.Task) command.AttemptName {
	return command.AttemptName{Task: t.ID, Started: t.Started}
}

// The owner commits Started and dies before the assignment leaves it. The node's offer is still open and comes again.
func TestOffer_AssignmentOutlivesTheOwnerThatMadeIt(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
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
	b := newBench(t, -1)
	b.submit(Policy{})
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
	b := newBench(t, -1)
	b.submit(Policy{})
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

// Its attempt started with other parameters than the task has now. With those it was merged with it starts after a roll call.
func TestOffer_AnsweredAgainLeavesOutWhatWasMergedSince(t *testing.T) {
	for name, between := range map[string]func(b *bench){"SameOwner": func(*bench) {}, "NextOwner": (*bench).takeOver} {
		b := newBench(t, -1)
		b.submit(Policy{})
		offer, task := b.assign() // whose answer is lost
		merge := &command.Merge{Submit: *submitOf(Policy{}), Life: task.Created, Seq: task.Seq}
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
	b := newBench(t, -1)
	early, late := b.offer(), b.offer()
	b.deliver(early)
	b.deliver(late)
	b.deliver(early)
	b.turn()
	b.submit(Policy{})
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
	for name, close := range map[string]func(*bench){
		"by a later one": func(b *bench) { b.deliver(b.offer()) },
		"by a roll call": func(b *bench) {
			b.deliver(b.next("far sender", command.LaneWork, &command.Reconcile{Node: farID, Epoch: b.own.ownership.Revision, Answered: 1}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, -1)
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
func TestRollCall_ReleasesAnAssignmentThatNeverArrived(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
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
func TestRollCall_LeavesAnAssignmentUnderWay(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	offer, task := b.assign()
	b.roll(&command.Reconcile{Node: farID, Answered: offer.batch.Number - 1})
	if got := b.task(); nameOf(got) != nameOf(task) || !got.OnNode() {
		t.Errorf("task is %s, attempt %+v; want still attempt %+v", got.Phase(), nameOf(got), nameOf(task))
	}
}

func TestRollCall_LeavesWhatTheNodeKnows(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	offer, task := b.assign()
	over := b.roll(&command.Reconcile{Node: farID, Attempts: []command.AttemptName{nameOf(task)}, Answered: offer.batch.Number})
	if got := b.task(); !got.OnNode() || len(over) != 0 {
		t.Errorf("task is %s, over are %+v; want it running", got.Phase(), over)
	}
}

// An owner on this node committed Started for the node itself, and lost the shard before it could call the function.
func TestRollCall_ReleasesALocalStartOfAnEarlierOwner(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
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
func (b *bench) localStart() {
	b.Helper()
	b.own.entry.Reset(events.Entry{Number: b.own.head.Number + 1, Epoch: b.own.ownership.Revision, Owner: selfID, Time: b.time, Prev: b.own.state.Hash})
	d := &command.Decider{State: b.own.state, Entry: &b.own.entry, Now: b.time, Note: b.own.note}
	d.Start(b.own.state.Task("x"), selfID, 0, b.m.ttl)
	if err := b.own.commit(b.Context(), d.Highest); err != nil || d.Err != nil {
		b.Fatalf("start on the owner's node: %v, %v", err, d.Err)
	}
}

// The node called the roll, then served the shard itself for a while and started the task, then handed the shard over. The
// roll call, sent again to the next owner, knows nothing of the attempt, which runs.
func TestRollCall_ForAnEarlierOwnerReleasesNothing(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	b.localStart()
	late := &command.Reconcile{Node: selfID, Epoch: b.own.ownership.Revision}
	b.takeOver()
	b.own.ownership.Revision++
	b.store.members.Owners[0] = store.Owner{Node: selfID, Revision: b.own.ownership.Revision}
	if a := b.ask(command.LaneWork, late); a.Code != command.AnswerStale {
		t.Errorf("roll call is answered %+v, want stale", a)
	}
	if got := b.task(); !got.OnNode() {
		t.Errorf("task is %s, want it running", got.Phase())
	}
}

func TestRollCall_NamesWhatIsOver(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	_, first := b.assign()
	b.accept(command.LaneWork, report(first, command.Succeeded))
	stranger := command.AttemptName{Task: "nobody", Started: events.RefOf(7, 0)}
	over := b.roll(&command.Reconcile{Node: farID, Attempts: []command.AttemptName{nameOf(first), stranger}})
	if len(over) != 2 || over[0] != nameOf(first) || over[1] != stranger {
		t.Errorf("over are %+v, want both", over)
	}
}

// The cancel overtook the assignment on another way and found nothing to cancel. The roll call brings it again.
func TestRollCall_RepeatsACancelThatCameTooEarly(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
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
func TestRollCall_AttemptOfAnotherLifeIsOver(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	_, first := b.assign()
	b.accept(command.LaneWork, report(first, command.Succeeded))
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoDelete})
	b.submit(Policy{})
	offer, second := b.assign()
	over := b.roll(&command.Reconcile{Node: farID, Attempts: []command.AttemptName{nameOf(first)}, Answered: offer.batch.Number})
	if len(over) != 1 || over[0] != nameOf(first) {
		t.Errorf("over are %+v, want the attempt of the first life", over)
	}
	if got := b.task(); got.OnNode() && nameOf(got) == nameOf(second) {
		t.Error("the second attempt was answered for by the first")
	}
}

// An answer comes while the roll is called. Were the offer counted as answered and its attempts not yet known, the owner
// would release attempts that are about to begin.
func TestRollCall_NeverMissesTheAttemptsOfAnAnsweredOffer(t *testing.T) {
	const slots, rounds = 256, 100
	b := newBench(t, slots, &plain{id: benchBehavior, run: func(ctx context.Context, _ Attempt) Outcome {
		<-ctx.Done()
		return Outcome{Err: &events.Error{Code: events.CodeFailed}}
	}})
	of, x := b.m.offers, b.m.exec
	freed := make(chan struct{}, slots)
	x.Freed = func() { freed <- struct{}{} }
	for range rounds {
		n, detail := x.Reserve(slots, nil)
		if n != slots {
			t.Fatalf("%d slots are free, want %d", n, slots)
		}
		of.lock()
		of.send(b.m, 0, n, detail)
		number := of.shards[0].number
		of.unlock()
		var w wire.Writer
		w.Array(slots)
		for i := range slots {
			a := command.Assignment{AttemptName: command.AttemptName{Task: "x", Started: events.RefOf(number, i)}, Behavior: benchBehavior, Number: 1}
			a.Encode(&w)
		}
		var calls sync.WaitGroup
		calls.Go(func() {
			for of.rollCallsDue(func(int) bool { return true })[0] < number {
				of.rollCalled(0, false)
			}
			if known := len(x.names(b.m, 0)); known != slots {
				t.Errorf("offer %d is called answered, and %d of its %d attempts are known", number, known, slots)
			}
		})
		of.Answered(0, number, []command.Answer{{Data: w.B}})
		calls.Wait()
		x.cancelAll(b.m, errFenced)
		for range slots {
			await(t, freed, "a slot")
		}
	}
}

// The answer to an offer got lost, and a later offer has closed it. The roll call that tells the owner so must not wait
// for something else to happen in the shard.
func TestOffer_GivenUpIsFollowedByARollCall(t *testing.T) {
	b := newBench(t, 8)
	of := b.m.offers
	of.lock()
	of.send(b.m, 0, 0, nil)
	of.send(b.m, 0, 0, nil)
	of.unlock()
	of.Answered(0, 2, nil)
	nobody := func(int) bool { return false }
	if due := of.rollCallsDue(nobody); len(due) != 0 {
		t.Fatalf("roll calls are due before the offer is given up: %v", due)
	}
	of.mu.Lock()
	of.forget(&of.shards[0], farID, time.Now().Add(2*closedOffer))
	of.mu.Unlock()
	if due := of.rollCallsDue(nobody); due[0] != 1 {
		t.Errorf("roll calls due are %v, want one of shard 0 that counts offer 1 as answered", due)
	}
	await(t, of.calls, "a wake-up")
}

// An offer that comes while the session may be over is taken once it was renewed, though nothing else makes the owner turn.
func TestOwner_ComesAgainForWhatItMayNotStart(t *testing.T) {
	b := newBench(t, -1)
	b.submit(Policy{})
	offer := b.offer()
	b.deliver(offer)
	b.m.renewed.Store(int64(time.Since(clockBase) - b.m.ttl))
	b.turn()
	if wait, comes := b.own.untilDue(); len(offer.got) > 0 && len(offer.got[0]) > 0 || !comes || wait > mayStartAgain {
		t.Fatalf("the offer is answered with %+v, and the owner comes again (%t) in %s", offer.got, comes, wait)
	}
	b.m.renewed.Store(int64(time.Since(clockBase)))
	b.turn()
	if task := b.own.state.Task("x"); task.Status != projection.Running {
		t.Errorf("the task is %s", task.Status)
	}
	if wait, comes := b.own.untilDue(); comes && wait <= mayStartAgain {
		t.Errorf("with nothing to start it comes again in %s", wait)
	}
}

// An answer may come when the session of its offer is over and another one has begun: nothing of it starts, and the
// slots are free again.
func TestOffer_AnsweredAfterItsSessionStartsNothing(t *testing.T) {
	b := newBench(t, 1, &script{id: benchBehavior, run: func(context.Context, Attempt) Outcome {
		t.Error("an attempt has started")
		return Outcome{}
	}})
	of, x := b.m.offers, b.m.exec
	n, detail := x.Reserve(1, nil)
	of.lock()
	of.send(b.m, 0, n, detail)
	number := of.shards[0].number
	of.unlock()
	b.m.session.ID = "bench-later"
	var w wire.Writer
	w.Array(1)
	a := command.Assignment{AttemptName: command.AttemptName{Task: "x", Started: events.RefOf(1, 0)}, Behavior: benchBehavior, Number: 1}
	a.Encode(&w)
	of.Answered(0, number, []command.Answer{{Data: w.B}})
	if known := x.names(b.m, 0); len(known) != 0 {
		t.Errorf("attempts of the session that is over: %v", known)
	}
	if free := x.Unreserved(); free != 1 {
		t.Errorf("%d slots are free, want 1", free)
	}
}
