package worker

import (
	"context"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
)

const (
	IdleWorker   = idleWorker
	ClosedOffer  = closedOffer
	AbandonAfter = abandonAfter
	UsualMost    = usualMost
	IdleAfter    = idleAfter
)

var (
	ErrTimeout = errTimeout
	ByPolicy   = byPolicy
)

// SetParents makes a context the parent of those of all attempts.
func (s *Session) SetParents(parent context.Context) {
	for i := range s.parents {
		s.parents[i] = parent
	}
}

// LetWait lets an attempt wait that nothing is known of, as if a worker were on its way to it.
func (x *Executor) LetWait() { x.queue, x.waking = append(x.queue, &attempt{}), true }

// Next takes the first attempt that waits, as the worker does that was on its way, and reports whether there is one.
func (x *Executor) Next() bool { return x.next(true) != nil }

// Hold reports whether an outcome of a shard is delayed.
func (x *Executor) Hold(shard int) bool { return x.leaveToWorker(shard) }

// AwaitWorkers waits until no worker is left.
func (x *Executor) AwaitWorkers() { x.workers.Wait() }

// Names lists the attempts of a session in a shard.
func (x *Executor) Names(s *Session, shard int) []command.AttemptName { return x.names(s, shard) }

// Send makes an offer, whatever stands, and returns its number.
func (of *Offers) Send(s *Session, shard, slots int, detail []command.OfferedBehavior) (number uint64) {
	of.lock()
	defer of.unlock()
	of.send(s, shard, slots, detail)
	return of.shards[shard].number
}

// Adjust does what Run does when the offers are looked at.
func (of *Offers) Adjust(s *Session, now time.Time) time.Duration { return of.adjust(s, now) }

// Made returns how many offers were made to a shard.
func (of *Offers) Made(shard int) uint64 { return of.shards[shard].number }

// Last returns the offer that stands.
func (of *Offers) Last(shard int) *sender.Flight { return of.shards[shard].last().Flight }

// Usual returns what counts as the usual answer time.
func (of *Offers) Usual() time.Duration { return of.usual }

// SetUsual sets what counts as the usual answer time.
func (of *Offers) SetUsual(d time.Duration) { of.usual = d }

// ReconcilesDue begins the Reconciles that are due, as RunReconcile does.
func (of *Offers) ReconcilesDue(busy func(shard int) bool) map[int]uint64 {
	return of.reconcilesDue(busy)
}

// SendReconciles sends the Reconciles that were due.
func (of *Offers) SendReconciles(s *Session, due map[int]uint64) { of.sendReconciles(s, due) }

// Reconciled ends a Reconcile.
func (of *Offers) Reconciled(shard int, stale bool) { of.reconciled(shard, stale) }

// Calls receives when a Reconcile is due at once.
func (of *Offers) Calls() <-chan struct{} { return of.reconcileNow }
