package shard

import (
	"context"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/projection"
)

const (
	ReadAgain     = readAgain
	AskedAgain    = askedAgain
	KeepFound     = retainFound
	MaxSearches   = maxSearches
	MayStartAgain = mayStartAgain
	LookTasks     = scanTasks
	LookBytes     = scanBytes
)

// Turn takes one turn, as Run does when the inbox is woken.
func (o *Owner) Turn(ctx context.Context) error { return o.takeTurn(ctx) }

// State returns the state in memory.
func (o *Owner) State() *projection.Shard { return o.state }

// Now returns the time of the shard.
func (o *Owner) Now() events.Millis { return o.now() }

// UntilDue returns how long the owner may sleep.
func (o *Owner) UntilDue() (time.Duration, bool) { return o.untilDue() }

// Remember notes a batch as decided.
func (o *Owner) Remember(lane projection.SenderLane, number uint64, answers []command.Answer) {
	o.remember(lane, number, answers)
}

// RefuseGathered refuses what has gathered while the store is full.
func (o *Owner) RefuseGathered(refused map[projection.SenderLane]uint64) { o.refuseGathered(refused) }

// PutBack returns deliveries to the front of a lane.
func (i *Inbox) PutBack(lane uint8, rest []Delivery) { i.putBack(lane, rest) }

// Size is the number of commands and batches that wait.
func (i *Inbox) Size() int { return i.size() }

// Offers returns the senders of the offers that are parked.
func (o *Owner) Offers() (senders []string) {
	for _, p := range o.starts.offers {
		senders = append(senders, p.Sender)
	}
	return senders
}

// NextStart picks the next task to start, and reports whether it takes a slot of this node.
func (o *Owner) NextStart() (t *projection.Task, local bool) {
	t, local, _ = o.nextStart()
	return t, local
}

// StartHere commits a start on the owner's node, as assign does, whose effect is never performed.
func (o *Owner) StartHere(ctx context.Context, task events.TaskID, now events.Millis) error {
	o.beginEntry(now)
	d := &command.Decider{State: o.state, Entry: &o.entry, Now: now, Note: o.note}
	d.Start(o.state.Task(task), o.ownership.Session.ID, 0, o.cfg.TTL)
	if d.Err != nil {
		return d.Err
	}
	return o.commit(ctx, d.Highest)
}

// Await answers a question for an outcome.
func (o *Owner) Await(c *command.Await) (command.Answer, func(context.Context) command.Answer) {
	return o.await(c)
}

// Answer answers a question of a front.
func (o *Owner) Answer(c command.Command) (command.Answer, func(context.Context) command.Answer) {
	a, later, _ := o.answerExtension(c)
	return a, later
}

// LookAnew gives lists and questions about items their whole budget.
func (o *Owner) LookAnew() { o.scan = scanBudget{tasks: scanTasks} }

// Looked returns what lists and questions about items have used of their budget in the last turn.
func (o *Owner) Looked() (tasks, bytes int) { return scanTasks - o.scan.tasks, o.scan.bytes }

// Prove asks for a proof that the shard still is the owner's.
func (o *Owner) Prove(told func(error)) { o.prover.prove(told) }

// Figures returns the figures of the owner.
func (o *Owner) Figures() ([]string, []int64) { return o.tally.Figures() }

// Searching returns how many searches are under way or keep a place.
func (o *Owner) Searching() int {
	o.searches.mu.Lock()
	defer o.searches.mu.Unlock()
	return len(o.searches.under) + len(o.searches.slots)
}

// Ended lets the owner be one whose Run has returned.
func (o *Owner) Ended() { close(o.ending.done) }

// IsAsked reports whether the owner is asked to hand the shard over.
func (o *Owner) IsAsked() bool { return o.ending.asked.Load() != nil }

// SetTrims sets what the owner knows of its journal and archive.
func (o *Owner) SetTrims(first, archived, head uint64) {
	o.trims.first.Store(first)
	o.trims.archived.Store(archived)
	o.published.head.Store(head)
}

// TakeSnapshot takes a snapshot between two turns, as Run does once the tail of the journal is long, unless a turn has
// taken one. It returns the entry that the snapshot is of, and its parts.
func (o *Owner) TakeSnapshot() (entry uint64, parts [][]byte) {
	o.taking.tail = maxTail
	for o.takeSnapshot() {
	}
	entry, parts, _ = o.snapshots.next()
	o.snapshots.begin(0)
	return entry, parts
}

// GiveUpSnapshot ends the snapshot of an entry.
func (o *Owner) GiveUpSnapshot(entry uint64, err error) { o.snapshots.giveUp(entry, err) }

// SnapshotProblem returns why the last snapshot was given up.
func (o *Owner) SnapshotProblem() string { return o.snapshots.trouble() }

// Lag measures how long the archive of a shard has lacked something.
type Lag struct{ lag }

// Behind is lag.behind.
func (l *Lag) Behind(until, done uint64, now time.Time) uint64 { return l.behind(until, done, now) }
