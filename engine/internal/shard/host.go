package shard

import (
	"context"
	"log/slog"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/explanation"
	"taskledger/engine/internal/notice"
	"taskledger/engine/internal/outcome"
	"taskledger/engine/internal/slots"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/store"
)

// Host is the node that an owner lives in, during one session. Its methods do not block, but for Readable.
type Host interface {
	// MayStart reports whether the session is young enough to take on work, and to answer from memory.
	MayStart() bool
	// View returns the membership as it was seen last.
	View() *store.Membership
	// Sighted returns when the nodes were seen last.
	Sighted() command.Sightings
	// Readable makes sure that all nodes can read entries with events up to a kind. The error wraps
	// command.ErrDecideAnew when the entry need only be decided anew, with what is known of the nodes now.
	Readable(ctx context.Context, kind events.Kind) error
	// Spawn runs f, which must end soon after the session, in a goroutine of the session.
	Spawn(f func(ctx context.Context))
}

// Slots has the node's own slots, counted exactly, less those that it has offered to owners on other nodes.
type Slots interface {
	// Runs reports whether the node could ever run the behavior.
	Runs(behavior string) bool
	// FreeFor appends for each of a waiter's heads whether there is a slot for it that is kept for no other waiter.
	FreeFor(w slots.Waiter, heads []slots.Head, free []bool) []bool
	// Take takes a slot for a head; false when there is none, or another waiter's comes first.
	Take(w slots.Waiter, head slots.Head) bool
	// Untake gives back a slot that was taken for a start which will not happen.
	Untake(behavior string)
	// Await wakes the waiter when one of its heads may have a slot. Without heads it waits no longer.
	Await(w slots.Waiter, heads []slots.Head)
}

// Effects has the node do what follows from a committed entry. None waits for an answer; a network that takes
// nothing more may delay one by a second.
type Effects interface {
	// Launch makes an attempt, in a slot that was taken for it.
	Launch(shard int, a command.Assignment)
	// Cancel lets the node of an attempt know that it is cancelled.
	Cancel(shard int, c Cancel)
	// Announce reports outcomes to those who wait for them.
	Announce(shard int, outcomes []outcome.Outcome)
}

// Cancel names an attempt, and tells who has cancelled its task, and why.
type Cancel struct {
	Node string
	command.AttemptName
	By, Reason string
}

// Admission tells what may be accepted and started.
type Admission interface {
	// Refusal returns why no task is accepted; "" = tasks are.
	Refusal() string
	// Usage returns how full the store is.
	Usage() *store.Usage
	// LiveLimit returns how many bytes the live tasks of a shard may take.
	LiveLimit() int64
	// Blocked reports whether tasks of a behavior must not start.
	Blocked(behavior string) bool
}

// Explainer explains what keeps a task from starting here.
type Explainer interface {
	// WhyBlocked explains why tasks of a behavior must not start; false when they may. A cause that is about to
	// pass is told of ready tasks alone: the others wait for their time. Since is 0 where nobody knows it.
	WhyBlocked(behavior string, ready bool) (explanation.Explanation, bool)
	// Ready explains why a task of a behavior that is ready waits. offered reports whether another node has offered
	// a slot for it.
	Ready(behavior string, offered func() bool) explanation.Explanation
}

// Placement decides which node owns a shard.
type Placement interface {
	// Wants reports whether a shard that is served here falls to the node that asks for it.
	Wants(shard int, target string) bool
	// BacklogChanged learns that an owner has other ready tasks than before; blocked tells that some wait for a
	// slot of this node.
	BacklogChanged(blocked bool)
}

// Archiver is told of what owners archive.
type Archiver interface {
	// Archived notes that entries were archived now.
	Archived()
	// Problem returns why the archive does not keep everything; "" = it does.
	Problem() string
}

// Config holds what the owners of a session share.
type Config struct {
	Host      Host
	Slots     Slots
	Effects   Effects
	Admission Admission
	Explainer Explainer
	Placement Placement
	Archiver  Archiver

	Extensions []NewExtension // in the order in which they decide

	Loader  *Loader
	Owners  store.Owners
	Members store.Members

	Shards  int    // of the cluster
	Cluster string // its id
	TTL     time.Duration
	Drops   bool // entries that snapshots cover are removed, and archived nowhere
	Now     func() time.Time
	Log     *slog.Logger
	Notices *notice.Log
	Meter   meter.Meter
}
