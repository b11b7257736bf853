package worker

import (
	"context"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/task"
)

// rollCallEvery is how often a node tells the owners what it runs.
const rollCallEvery = 2 * time.Second

// RunReconcile tells the owners what this node runs, until ctx ends: every two seconds, and at once when an answer
// has got lost.
func (of *Offers) RunReconcile(ctx context.Context, session *Session) error {
	ticker := time.NewTicker(rollCallEvery)
	defer ticker.Stop()
	for {
		of.callRolls(session, of.rollCallsDue(func(shard int) bool { return of.x.busy(session, shard) }))
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-of.calls:
		}
	}
}

// LastReconcile tells the owners what this node runs as it leaves. The channel is closed when all have answered.
func (of *Offers) LastReconcile(session *Session) <-chan struct{} {
	return of.callRolls(session, of.lastRollCalls())
}

// rollCallsDue returns the shards whose owners must hear of this node, and up to which number offers are answered.
// Who has not answered the last roll call is not asked again: it may be away for long.
func (of *Offers) rollCallsDue(busy func(shard int) bool) map[int]uint64 {
	return of.beginRollCalls(func(shard int, s *shardOffers) bool { return s.calling == 0 && (s.rollCall || busy(shard)) })
}

// lastRollCalls is rollCallsDue for a node that leaves: it returns the shards whose owners have something to hear,
// or to answer.
func (of *Offers) lastRollCalls() map[int]uint64 {
	return of.beginRollCalls(func(_ int, s *shardOffers) bool { return s.calling > 0 || s.rollCall })
}

func (of *Offers) beginRollCalls(due func(shard int, s *shardOffers) bool) map[int]uint64 {
	of.mu.Lock()
	defer of.mu.Unlock()
	answered := map[int]uint64{}
	for shard := range of.shards {
		if s := &of.shards[shard]; due(shard, s) {
			answered[shard] = s.answeredUpTo()
			s.rollCall = false
			s.calling++
		}
	}
	return answered
}

// rollCalled learns that a roll call is answered, or given up; a stale one, which was refused or answered by
// another owner than it was for, is repeated with the next ones.
func (of *Offers) rollCalled(shard int, stale bool) {
	of.mu.Lock()
	defer of.mu.Unlock()
	s := &of.shards[shard]
	if s.calling--; s.calling == 0 && s.rollCall {
		of.calls.Notify()
	}
	s.rollCall = s.rollCall || stale
}

// callRolls calls the roll of some shards. The offers answered were read before the attempts are: what an offer
// brought up to then is among these. The channel that it returns is closed when all owners have answered.
func (of *Offers) callRolls(session *Session, answered map[int]uint64) <-chan struct{} {
	done := make(chan struct{})
	var left atomic.Int64
	finish := func() {
		if left.Add(-1) == 0 {
			close(done)
		}
	}
	left.Store(int64(len(answered)) + 1)
	for shard, number := range answered {
		of.callRoll(session, shard, number, finish)
	}
	finish()
	return done
}

func (of *Offers) callRoll(session *Session, shard int, answered uint64, finish func()) {
	epoch := session.cluster.View().Owners[shard].Revision // read before the attempts: see command.Reconcile
	attempts := of.x.names(session, shard)
	if session.over.Load() { // attempts are forgotten although they may still run
		of.rollCalled(shard, true)
		finish()
		return
	}
	parts := command.ReconcileParts(command.Reconcile{Node: session.ID, Epoch: epoch, Answered: answered}, attempts)
	var stale atomic.Bool
	var left atomic.Int64
	left.Store(int64(len(parts)))
	for _, c := range parts {
		answered := sender.CallerFunc(func(a command.Answer, err error) {
			if err == nil && a.Code == command.AnswerOK {
				of.cancelOver(session, shard, a)
			} else {
				stale.Store(true)
			}
			if left.Add(-1) == 0 {
				of.rollCalled(shard, stale.Load())
				finish()
			}
		})
		if err := of.cfg.Sender.Send(shard, command.LaneWork, sender.Call{Command: c, Caller: answered}); err != nil {
			answered(command.Answer{}, err)
		}
	}
}

// cancelOver ends the attempts that an owner calls over or cancelled.
func (of *Offers) cancelOver(session *Session, shard int, a command.Answer) {
	over, err := command.DecodeNames(a.Data)
	if err != nil {
		session.log.Warn("answer to a roll call cannot be read", "shard", shard, "err", err)
		return
	}
	for _, name := range over {
		of.x.Cancel(shard, name.Started, task.ErrCancelled)
	}
}
