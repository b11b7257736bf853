package shard_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/task"
)

// The lease was revoked although it was renewed a moment ago, and another owner has decided since.
func TestOwner_TellsNoStateOnceTheShardIsAnothers(t *testing.T) {
	other := submitOf(events.Policy{})
	other.Behavior = "another"
	unknown := command.AttemptName{Task: "y", Started: events.RefOf(7, 0)}
	late := projection.Task{ID: "y", LastAttempt: projection.LastAttempt{Started: unknown.Started, Node: farID}}
	for name, c := range map[string]struct {
		lane    uint8
		command command.Command
	}{
		"refusal":                    {command.LaneSubmit, &command.Operate{Task: "y", Do: command.DoCancel}},
		"overload":                   {command.LaneSubmit, &command.Submit{Task: "y", Behavior: benchBehavior, Policy: other.Policy}},
		"refusal of what is invalid": {command.LaneSubmit, other},
		"late outcome":               {command.LaneWork, report(late, command.Succeeded)},
		"attempt that is over":       {command.LaneWork, &command.Reconcile{Node: farID, Epoch: 100, Attempts: []command.AttemptName{unknown}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.submit(events.Policy{})
			b.node.refusal = "the store is full"
			b.epoch = int64(-b.sealed())
			b.takeOver() // under revision 100
			b.store.members.Owners[0] = store.Owner{Node: farID, Revision: 101}
			l := b.next("sender", c.lane, c.command)
			b.deliver(l)
			b.turn()
			if len(l.got) > 0 {
				t.Errorf("told %+v", l.got)
			}
			b.store.members.Owners[0] = store.Owner{Node: selfID, Revision: 100}
			b.deliver(l)
			b.turn()
			if len(l.got) != 1 {
				t.Errorf("once the shard is its own again: told %+v, want one answer", l.got)
			}
		})
	}
	b := newFixture(t)
	b.store.members.Owners[0] = store.Owner{Node: farID, Revision: b.own.Ownership().Revision + 1}
	if _, later := b.own.Await(&command.Await{Task: "x"}); later == nil || later(t.Context()).Code != command.AnswerTryAgain {
		t.Error("a future was told that there is no such task")
	}
}

// A reconciliation that finds nothing comes all the time and must cost no read.
func TestOwner_AnswersAnEmptyReconciliationWithoutAProof(t *testing.T) {
	b := newFixture(t)
	reads := &slowReads{Store: b.store, gate: make(chan error)}
	close(reads.gate) // they wait for nothing
	b.cfg.Members = reads
	b.accept(command.LaneWork, &command.Reconcile{Node: farID, Epoch: b.own.Ownership().Revision})
	if reads.begun != 0 {
		t.Errorf("%d reads of the membership, want none", reads.begun)
	}
}

// slowReads is a store whose reads of the membership wait for the test.
type slowReads struct {
	store.Store
	mu    sync.Mutex
	begun int
	gate  chan error
}

func (s *slowReads) ReadMembers(ctx context.Context) (store.Membership, error) {
	s.mu.Lock()
	s.begun++
	s.mu.Unlock()
	if err := <-s.gate; err != nil {
		return store.Membership{}, err
	}
	return s.Store.ReadMembers(ctx)
}

// What is asked while a read is under way was not asked before it began: it takes the next one, all together.
func TestProof_OneReadServesAllWhoAskedBeforeItBegan(t *testing.T) {
	b := newFixture(t)
	reads := &slowReads{Store: b.store, gate: make(chan error)}
	b.cfg.Members = reads
	told := make(chan error, 4)
	tell := func(err error) { told <- err }
	b.own.Prove(tell)
	reads.gate <- nil
	if err := <-told; err != nil {
		t.Error(err)
	}
	b.own.Prove(tell)
	for reads.started() < 2 {
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		b.own.Prove(tell)
	}
	away := errors.New("no etcd")
	reads.gate <- away
	if err := <-told; !errors.Is(err, away) {
		t.Errorf("a read that failed proves: %v", err)
	}
	reads.gate <- nil
	for range 3 {
		if err := <-told; err != nil {
			t.Error(err)
		}
	}
	b.node.tasks.Wait()
	if got := reads.started(); got != 3 {
		t.Errorf("%d reads, want 3", got)
	}
}

func (s *slowReads) started() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// fillSenders lets the shard remember as many senders as it may.
func (b *fixture) fillSenders() {
	e := &events.Entry{Number: b.own.State().Number, Hash: b.own.State().Hash, Time: b.own.State().Time}
	for i := range projection.MaxSenders {
		e.Origins = append(e.Origins, events.Origin{Sender: fmt.Sprint("s-", i), Lane: command.LaneSubmit, Number: 1})
	}
	b.own.State().Seal(e)
}

// Work is done by few; its outcomes are taken however many have submitted.
func TestOwner_TakesOutcomesOfASenderThatIsOneTooMany(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	_, started := b.assign()
	b.fillSenders()
	late := b.next("one too many", command.LaneSubmit, operate(command.DoCancel))
	b.deliver(late)
	b.turn()
	if late.got[0][0].Code != command.AnswerOverload {
		t.Errorf("a command of a new sender: told %+v, want overload", late.got)
	}
	b.accept(command.LaneWork, report(started, command.Succeeded))
	if got := b.task(); got.Status != task.Success {
		t.Errorf("task is %s", got.Phase())
	}
	if a := b.ask(command.LaneWork, &command.Reconcile{Node: selfID, Epoch: b.own.Ownership().Revision}); a.Code != command.AnswerOK {
		t.Errorf("reconciliation: answer %d %s", a.Code, a.Text)
	}
}

// Figures tell that a submit was refused, also where it was not decided.
func TestOwner_CountsTheSubmitsOfASenderThatIsOneTooMany(t *testing.T) {
	b := newFixture(t)
	b.submit(events.Policy{})
	b.fillSenders()
	late := b.next("one too many", command.LaneSubmit, submitOf(events.Policy{}), operate(command.DoCancel))
	b.deliver(late)
	b.turn()
	figures, err := meter.Unpack(b.own.Figures())
	if err != nil || len(figures) != 1 || figures[0].Counts[meter.SubmitsRefused] != 1 {
		t.Errorf("figures %+v, %v; want one refused submit", figures, err)
	}
}
