// Package shard owns a shard: its one writer decides what reaches it, in turn, against a state in memory, appends
// what follows to the journal as one entry, and performs the effects once that is committed. It answers questions
// from the same memory, takes snapshots, and archives and trims the journal.
//
// An owner knows the node that it lives in by its Config: interfaces of this package, and ports of package store.
package shard

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/notice"
	"taskledger/engine/internal/tally"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/projection"
	"taskledger/store"
)

// Owner is the one writer of a shard's journal. Its goroutine decides the commands that have gathered, commits their
// events as one entry, and only then performs the effects; while the entry is under way commands only gather. So its
// memory is, at every turn, exactly the committed state.
type Owner struct {
	cfg       *Config
	ownership store.Ownership
	began     uint64 // number of the first entry that this ownership may write
	log       *slog.Logger
	inbox     *Inbox
	ending    ending

	state      *projection.Shard
	clock      clock
	head       store.Head
	entry      events.Builder
	spare      Mail
	memory     memory
	pending    pendingEffects
	starts     starts
	scan       scanBudget
	oversized  *command.Oversized // commands that owners of the shard on this node could not store
	tally      *tally.Tally
	waits      waits
	extensions extensions

	taking    taking
	snapshots *snapshots
	trims     *trims
	searches  *searches
	prover    *prover
	published published
}

// ending leads to the end of an owner's Run.
type ending struct {
	asked atomic.Pointer[handOverRequest]
	stop  func()
	done  chan struct{} // closed when Run has returned
}

// handOverRequest asks the owner to hand the shard over, and to tell whether it did.
type handOverRequest struct {
	target string
	done   func(error)
}

// published holds what other goroutines may read of an owner.
type published struct {
	deciding atomic.Int64                   // since when, on the monotonic clock; 0 = waiting, for commands or for etcd
	running  atomic.Pointer[[]string]       // nodes with attempts
	backlog  atomic.Pointer[map[string]int] // ready tasks by behavior

	refused, bugs          atomic.Int64
	head                   atomic.Uint64
	live, tasks, liveBytes atomic.Int64
	gauges                 [len(meter.Gauges)]atomic.Int64 // of extensions
}

// base anchors the monotonic clock.
var base = time.Now()

// New returns the owner of a shard that was loaded. oversized are kept from one owner of the shard on this node to
// the next; stop ends the context of Run.
func New(cfg *Config, o store.Ownership, have *Loaded, oversized *command.Oversized, stop func()) *Owner {
	own := &Owner{
		cfg:       cfg,
		ownership: o,
		began:     have.Head.Number + 1,
		log:       cfg.Log.With("shard", o.Shard),
		inbox:     NewInbox(),
		ending:    ending{stop: stop, done: make(chan struct{})},
		state:     have.State,
		clock:     newClock(have.State.Time, time.Since(base)),
		head:      have.Head,
		memory:    memory{seen: map[projection.SenderLane]answered{}},
		oversized: oversized,
		pending:   pendingEffects{mishaps: notice.NewMishaps(cfg.Notices, o.Shard)},
		tally:     tally.New(cfg.Meter),
		taking:    taking{tail: have.tail},
		prover:    &prover{cfg: cfg, ownership: o},
	}
	own.searches = newSearches(cfg.Host, own.ending.done)
	own.snapshots = newSnapshots(cfg, o, own.log, own.inbox.wake, have)
	own.trims = newTrims(own.snapshots, &own.published.head)
	own.trims.lost = have.State.CutAfter()
	own.extend(cfg.Extensions)
	own.publishView()
	return own
}

func (o *Owner) shard() command.Shard {
	return command.Shard{Number: o.ownership.Shard, Count: o.cfg.Shards}
}

// Inbox returns where batches and lost nodes reach the owner.
func (o *Owner) Inbox() *Inbox { return o.inbox }

// Ownership returns the ownership that the owner writes under.
func (o *Owner) Ownership() store.Ownership { return o.ownership }

// Stop ends Run.
func (o *Owner) Stop() { o.ending.stop() }

// StoreSnapshots stores the snapshots that the owner takes, until ctx ends.
func (o *Owner) StoreSnapshots(ctx context.Context) { o.snapshots.run(ctx) }

// Trim archives and trims the journal, until ctx ends.
func (o *Owner) Trim(ctx context.Context) { o.trims.run(ctx) }

// Served lets extensions know that the shard is about to be served, and notes how long that took.
func (o *Owner) Served(after time.Duration) {
	o.serveExtensions()
	o.tally.Served(after)
}

// HandOver asks the owner to hand the shard over, and reports whether it will: done is then called once. It will
// not while it is asked to by another.
func (o *Owner) HandOver(target string, done func(error)) bool {
	if !o.ending.asked.CompareAndSwap(nil, &handOverRequest{target, done}) {
		return false
	}
	o.inbox.Wake()
	return true
}

// Backlog returns the ready tasks by behavior. Nobody may change it.
func (o *Owner) Backlog() map[string]int { return *o.published.backlog.Load() }

// RunningNodes returns the sessions that have attempts of the shard. Nobody may change it.
func (o *Owner) RunningNodes() []string { return *o.published.running.Load() }

// DecidesFor returns for how long the owner has been busy with one turn; 0 while it waits.
func (o *Owner) DecidesFor() time.Duration {
	since := o.published.deciding.Load()
	if since == 0 {
		return 0
	}
	return time.Since(base) - time.Duration(since)
}

// Vitals describes the state of an owner.
type Vitals struct {
	Tasks, Live int64 // in memory, and of these not finished
	LiveBytes   int64
	Gauges      [len(meter.Gauges)]int64 // those that extensions set
	Unarchived  uint64                   // entries that were not read back from the archive, as far as known
	Archived    uint64                   // last entry that was; 0 = none, as far as known
	TrimProblem string                   // why the journal is not trimmed; "" = it is
}

// Vitals returns how the owner is.
func (o *Owner) Vitals() Vitals {
	p := &o.published
	v := Vitals{
		Tasks:      p.tasks.Load(),
		Live:       p.live.Load(),
		LiveBytes:  p.liveBytes.Load(),
		Unarchived: o.trims.unarchived(),
		Archived:   o.trims.archived.Load(),
	}
	for g := range v.Gauges {
		v.Gauges[g] = p.gauges[g].Load()
	}
	if problem := o.trims.problem.Load(); problem != nil {
		v.TrimProblem = *problem
	}
	return v
}

// Recorded reports whether the journal holds a batch, once Run has returned.
func (o *Owner) Recorded(b *command.Batch) bool {
	row := o.state.Decided(projection.SenderLane{Sender: b.Sender, Lane: b.Lane})
	return row != nil && b.Number <= row.Number
}

// Decided reports whether a write that was under way when Run returned may hold a batch.
func (o *Owner) Decided(b *command.Batch) bool {
	_, done := o.decided(b)
	return done
}

// wall returns the time of the wall clock.
func (o *Owner) wall() events.Millis { return events.MillisOf(o.cfg.Now()) }

// Run serves the shard until ctx ends, the shard is handed over, or it is lost; the last two by the error that is
// returned.
func (o *Owner) Run(ctx context.Context) error {
	defer close(o.ending.done)
	defer o.cfg.Slots.Await(o.inbox, nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.inbox.wake:
			o.inbox.gather()
		case <-timer.C:
		}
		if err := o.takeTurn(ctx); err != nil {
			return err
		}
		if o.takeSnapshot() {
			o.inbox.wake.Notify()
		}
		if wait, ok := o.untilDue(); ok {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		if req := o.ending.asked.Swap(nil); req != nil {
			err := o.giveAway(ctx, req.target)
			req.done(err)
			if err == nil {
				return ErrHandedOver
			}
			o.log.InfoContext(ctx, "hand-over refused", "target", req.target, "err", err)
			if gone := o.prover.stillOwner(ctx); gone != nil {
				return gone
			}
		}
	}
}

// ErrHandedOver reports that a shard was handed over.
var ErrHandedOver = errors.New("shard was handed over")

// mayStartAgain is the interval at which an owner whose session may be over looks whether it was renewed.
const mayStartAgain = 50 * time.Millisecond

// untilDue returns how long the owner may sleep.
func (o *Owner) untilDue() (time.Duration, bool) {
	if o.starts.barred && len(*o.published.backlog.Load()) > 0 { // what is ready was passed over
		return mayStartAgain, true
	}
	due, tasks := o.nextAlarm()
	if due == 0 {
		return 0, false
	}
	var least time.Duration
	if tasks && !o.cfg.Host.MayStart() { // what is due stays due
		least = mayStartAgain
	}
	return max(o.clock.Until(due, o.wall(), time.Since(base)), least), true
}

// now is the time of the shard.
func (o *Owner) now() events.Millis { return o.clock.Now(o.wall(), time.Since(base)) }

// publishView shows other goroutines what they may know of the state.
func (o *Owner) publishView() {
	nodes := o.state.RunningNodes()
	o.published.running.Store(&nodes)
	backlog := map[string]int{}
	for behavior, n := range o.state.Backlog() {
		if !o.cfg.Admission.Blocked(behavior) { // no slot is needed for it
			backlog[behavior] = n
		}
	}
	old := o.published.backlog.Swap(&backlog)
	o.published.head.Store(o.head.Number)
	o.published.live.Store(int64(o.state.Live()))
	o.published.tasks.Store(int64(o.state.Len()))
	o.published.liveBytes.Store(o.state.LiveBytes())
	o.publishGauges()
	if old == nil || len(*old) > 0 || len(backlog) > 0 {
		o.cfg.Placement.BacklogChanged(o.starts.blocked)
	}
}
