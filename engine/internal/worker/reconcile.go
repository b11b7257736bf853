package worker

import (
	"context"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/task"
)

// reconcileEvery is the interval at which a node reports to the owners what it runs.
const reconcileEvery = 2 * time.Second

// RunReconcile reports to the owners what this node runs, until ctx ends: every two seconds, and at once when an
// answer was lost.
func (of *Offers) RunReconcile(ctx context.Context, session *Session) error {
	ticker := time.NewTicker(reconcileEvery)
	defer ticker.Stop()
	for {
		of.sendReconciles(session, of.reconcilesDue(func(shard int) bool { return of.x.busy(session, shard) }))
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-of.reconcileNow:
		}
	}
}

// LastReconcile reports to the owners what this node runs as it leaves. The channel is closed when all have answered.
func (of *Offers) LastReconcile(session *Session) <-chan struct{} {
	return of.sendReconciles(session, of.lastReconciles())
}

// reconcilesDue returns the shards whose owners need a Reconcile, and up to which number their offers are answered. An
// owner that has not answered the last Reconcile gets no other one: it may be away for long.
func (of *Offers) reconcilesDue(busy func(shard int) bool) map[int]uint64 {
	return of.beginReconciles(func(shard int, s *shardOffers) bool {
		return s.reconciling == 0 && (s.unreconciled || busy(shard))
	})
}

// lastReconciles is reconcilesDue for a node that leaves: it returns the shards whose owners need a Reconcile, or have
// not answered one.
func (of *Offers) lastReconciles() map[int]uint64 {
	return of.beginReconciles(func(_ int, s *shardOffers) bool { return s.reconciling > 0 || s.unreconciled })
}

func (of *Offers) beginReconciles(due func(shard int, s *shardOffers) bool) map[int]uint64 {
	of.mu.Lock()
	defer of.mu.Unlock()
	answered := map[int]uint64{}
	for shard := range of.shards {
		if s := &of.shards[shard]; due(shard, s) {
			answered[shard] = s.answeredUpTo()
			s.unreconciled = false
			s.reconciling++
		}
	}
	return answered
}

// reconciled notes that a Reconcile was answered, or given up. A stale one, which was refused or answered by another
// owner than it was for, is repeated with the next ones.
func (of *Offers) reconciled(shard int, stale bool) {
	of.mu.Lock()
	defer of.mu.Unlock()
	s := &of.shards[shard]
	if s.reconciling--; s.reconciling == 0 && s.unreconciled {
		of.reconcileNow.Notify()
	}
	s.unreconciled = s.unreconciled || stale
}

// sendReconciles sends a Reconcile to the owners of some shards. The numbers of answered offers were read before the
// attempts are, so the attempts that these offers brought are among them. The channel is closed when all owners have
// answered.
func (of *Offers) sendReconciles(session *Session, answered map[int]uint64) <-chan struct{} {
	done := make(chan struct{})
	var left atomic.Int64
	finish := func() {
		if left.Add(-1) == 0 {
			close(done)
		}
	}
	left.Store(int64(len(answered)) + 1)
	for shard, number := range answered {
		of.sendReconcile(session, shard, number, finish)
	}
	finish()
	return done
}

func (of *Offers) sendReconcile(session *Session, shard int, answered uint64, finish func()) {
	epoch := session.cluster.View().Owners[shard].Revision // read before the attempts: see command.Reconcile
	attempts := of.x.names(session, shard)
	if session.over.Load() { // attempts are forgotten although they may still run
		of.reconciled(shard, true)
		finish()
		return
	}
	parts := command.ReconcileParts(command.Reconcile{Node: session.ID, Epoch: epoch, Answered: answered}, attempts)
	var stale atomic.Bool
	var left atomic.Int64
	left.Store(int64(len(parts)))
	for _, c := range parts {
		answered := sender.WaiterFunc(func(a command.Answer, err error) {
			if err == nil && a.Code == command.AnswerOK {
				of.cancelOver(session, shard, a)
			} else {
				stale.Store(true)
			}
			if left.Add(-1) == 0 {
				of.reconciled(shard, stale.Load())
				finish()
			}
		})
		if err := of.cfg.Sender.Send(shard, command.LaneWork, sender.Call{Command: c, Waiter: answered}); err != nil {
			answered(command.Answer{}, err)
		}
	}
}

// cancelOver ends the attempts that an owner calls over or cancelled.
func (of *Offers) cancelOver(session *Session, shard int, a command.Answer) {
	over, err := command.DecodeNames(a.Data)
	if err != nil {
		session.log.Warn("answer to a reconcile cannot be read", "shard", shard, "err", err)
		return
	}
	for _, name := range over {
		of.x.Cancel(shard, name.Started, task.ErrCancelled)
	}
}
