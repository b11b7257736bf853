package engine

import (
	"context"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
)

// rollCallEvery is how often a node tells the owners what it runs.
const rollCallEvery = 2 * time.Second

// rollCalls tells the owners what this node runs: every two seconds, and at once when an answer has got lost.
func (m *member) rollCalls(ctx context.Context) error {
	ticker := time.NewTicker(rollCallEvery)
	defer ticker.Stop()
	for {
		m.callRolls(m.offers.rollCallsDue(func(shard int) bool { return m.exec.busy(m, shard) }))
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-m.offers.calls:
		}
	}
}

// rollCallsDue returns the shards whose owners must hear of this node, and up to which number offers are answered. Who has
// not answered the last roll call is not asked again: it may be away for long.
func (of *offers) rollCallsDue(busy func(shard int) bool) map[int]uint64 {
	return of.beginRollCalls(func(shard int, s *shardOffers) bool { return s.calling == 0 && (s.rollCall || busy(shard)) })
}

// lastRollCalls is rollCallsDue for a node that leaves: it returns the shards whose owners have something to hear, or to answer.
func (of *offers) lastRollCalls() map[int]uint64 {
	return of.beginRollCalls(func(_ int, s *shardOffers) bool { return s.calling > 0 || s.rollCall })
}

func (of *offers) beginRollCalls(due func(shard int, s *shardOffers) bool) map[int]uint64 {
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

// rollCalled learns that a roll call is answered, or given up; a stale one, which was refused or answered by another owner
// than it was for, is repeated with the next ones.
func (of *offers) rollCalled(shard int, stale bool) {
	of.mu.Lock()
	defer of.mu.Unlock()
	s := &of.shards[shard]
	if s.calling--; s.calling == 0 && s.rollCall {
		of.calls.Notify()
	}
	s.rollCall = s.rollCall || stale
}

// callRolls calls the roll of some shards. The offers answered were read before the attempts are: what an offer brought up
// to then is among these. The channel that it returns is closed when all owners have answered.
func (m *member) callRolls(answered map[int]uint64) <-chan struct{} {
	done := make(chan struct{})
	var left atomic.Int64
	finish := func() {
		if left.Add(-1) == 0 {
			close(done)
		}
	}
	left.Store(int64(len(answered)) + 1)
	for shard, number := range answered {
		m.callRoll(shard, number, finish)
	}
	finish()
	return done
}

func (m *member) callRoll(shard int, answered uint64, finish func()) {
	epoch := m.view.Load().Owners[shard].Revision // read before the attempts: see command.Reconcile
	attempts := m.exec.names(m, shard)
	if m.over.Load() { // attempts are forgotten although they may still run
		m.offers.rollCalled(shard, true)
		finish()
		return
	}
	parts := command.ReconcileParts(command.Reconcile{Node: m.session.ID, Epoch: epoch, Answered: answered}, attempts)
	var stale atomic.Bool
	var left atomic.Int64
	left.Store(int64(len(parts)))
	for _, c := range parts {
		answered := sender.CallerFunc(func(a command.Answer, err error) {
			if err == nil && a.Code == command.AnswerOK {
				m.cancelOver(shard, a)
			} else {
				stale.Store(true)
			}
			if left.Add(-1) == 0 {
				m.offers.rollCalled(shard, stale.Load())
				finish()
			}
		})
		if err := m.sender.Send(shard, command.LaneWork, sender.Call{Command: c, Caller: answered}); err != nil {
			answered(command.Answer{}, err)
		}
	}
}

// cancelOver ends the attempts that an owner calls over or cancelled.
func (m *member) cancelOver(shard int, a command.Answer) {
	over, err := command.DecodeNames(a.Data)
	if err != nil {
		m.log.Warn("answer to a roll call cannot be read", "shard", shard, "err", err)
		return
	}
	for _, name := range over {
		m.exec.cancelAttempt(shard, name.Started, ErrCancelled)
	}
}
