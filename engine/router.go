package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/lookout"
	"taskledger/engine/internal/yielder"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

const (
	// busPatience is how long a batch may go without answer or acknowledgement before it takes the way through the store.
	busPatience = 250 * time.Millisecond
	// resendEvery is how long an acknowledged or posted batch may go unanswered before it is sent again.
	resendEvery = 2 * time.Second
	// giveUp is how long a batch is resent. Owners remember numbers longer, so that a number is never decided twice. Reports of
	// attempts are never given up: they name their attempt, and one that is given up means another run.
	giveUp = 30 * time.Minute
	// maxWaiting bounds the commands that wait for a lane; submits beyond it are refused.
	maxWaiting = 50_000
	// maxWait bounds how long the first of more than fewWaiting may have waited when a batch has left without it: the owner is
	// there and does not keep up, a submit behind them would take longer, and a refusal now is better than an answer after its
	// caller has given up. While no batch leaves, because the owner is replaced, say, all wait.
	maxWait    = time.Second
	fewWaiting = 256
	// postmen is how many post letters side by side.
	postmen = 4
)

// router takes commands to the owners of their shards and answers back: to an owner in this process by a call, else over
// the bus, else through the store. Commands of a lane that gather while a batch is under way become the next batch. A
// batch is sent again, the same bytes under the same number, until it is answered.
type router struct {
	yielder.Yielder
	now       func() time.Time // of the wall clock
	sender    string           // random, kept for the life of the node or client
	principal string
	bus       store.Bus     // nil without
	mailbox   store.Mailbox // nil without
	log       *slog.Logger
	lanes     [][command.LaneCount]lane // by shard
	owners    sync.Map                  // shard -> *inbox of an owner in this process
	connected atomic.Bool               // the bus
	posts     [postmen]chan *flight     // to be posted through the store; those of a shard to one postman, in order
	detoured  []atomic.Bool             // by shard: the last batch went through the store
	offers    *offers                   // takes what concerns command.LaneOffer; nil in a client
	closed    atomic.Bool
	lookout   *lookout.Lookout
	pending   sync.Pool // that wait for nothing, to be used again; not of the process: a bubble of time must not share them
}

func newRouter(sender, principal string, shards int, bus store.Bus, mailbox store.Mailbox, log *slog.Logger) *router {
	r := &router{now: time.Now, sender: sender, principal: principal, bus: bus, mailbox: mailbox, log: log,
		lanes: make([][command.LaneCount]lane, shards), detoured: make([]atomic.Bool, shards), pending: sync.Pool{New: newPending}, lookout: lookout.New()}
	for i := range r.posts {
		r.posts[i] = make(chan *flight, shards*int(command.LaneCount))
	}
	return r
}

// send queues a command of the client's or node's own.
func (r *router) send(shard int, laneID uint8, c command.Command, by caller) error {
	return r.sendCall(shard, laneID, call{command: c, caller: by})
}

// sendCall queues a command, and lets it leave.
func (r *router) sendCall(shard int, laneID uint8, c call) error {
	err := r.queue(shard, laneID, c)
	if err == nil {
		r.flush(shard, laneID)
	}
	return err
}

// queue lets a command wait for the next batch. An error means that nothing will be sent, and its caller is never told: the command is larger than
// any may be, or the submit lane takes no more.
func (r *router) queue(shard int, laneID uint8, c call) error {
	if err := command.Check(c.command); err != nil {
		return err
	}
	l := &r.lanes[shard][laneID]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.queueLocked(shard, laneID, c)
}

// queueLocked is queue of a command that was checked.
func (l *lane) queueLocked(shard int, laneID uint8, c call) error {
	now := time.Since(clockBase)
	if laneID == command.LaneSubmit {
		if err := l.refusesLocked(shard, c.command, now); err != nil {
			return err
		}
	}
	c.since, c.left = now, l.left
	l.waiting = append(l.waiting, c)
	return nil
}

// later is send of what an attempt reports, which leaves with the next one that is sent or by flush.
func (r *router) later(shard int, c command.Command, by caller) {
	if err := command.Check(c); err != nil {
		by.answered(command.Answer{}, err)
		return
	}
	l := &r.lanes[shard][command.LaneWork]
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, call{command: c, caller: by, since: time.Since(clockBase), left: l.left})
}

// flush lets what waits in a lane leave, unless a batch is under way.
func (r *router) flush(shard int, laneID uint8) {
	if in := r.ownerHere(shard, laneID); in != nil {
		in.wake.notify()
		return
	}
	l := &r.lanes[shard][laneID]
	l.mu.Lock()
	if l.flight != nil || l.yielding {
		l.mu.Unlock()
		return
	}
	l.yielding = true
	l.mu.Unlock()
	if laneID == command.LaneSubmit || laneID == command.LaneWork {
		r.Yield() // the first command of a batch lets whoever is ready to run add to it
	}
	r.leave(shard, laneID)
}

// leave makes a batch of what waits in a lane, if none is under way, and sends it, unless no node may be alive.
func (r *router) leave(shard int, laneID uint8) {
	asks := laneID == command.LaneSubmit || laneID == command.LaneQuery
	made, holds := r.now(), asks && r.lookout.Doubtful()
	var f *flight
	l := &r.lanes[shard][laneID]
	l.mu.Lock()
	l.yielding = false
	if !holds {
		f = r.nextFlight(l, shard, laneID, made)
	}
	l.mu.Unlock()
	r.dispatch(f)
}

// nextFlight makes a batch of what waits, if none is under way. The time is read before the lane is locked.
func (r *router) nextFlight(l *lane, shard int, laneID uint8, made time.Time) *flight {
	if l.flight != nil || len(l.waiting) == 0 || r.closed.Load() {
		return nil
	}
	n, size := 0, 0
	for n < len(l.waiting) && n < command.MaxBatchCommands && size < command.MaxBatchBytes {
		size += l.waiting[n].size()
		n++
	}
	l.number++
	l.left++
	f := newFlight(shard, r.batch(laneID, l.number, made, make([]command.Command, 0, n)), l.waiting[:n:n])
	for i := range f.calls {
		if c, ages := f.calls[i].command.(command.Aging); ages {
			c.Waited(time.Since(clockBase) - f.calls[i].since)
		}
		f.batch.Add(f.calls[i].command, f.calls[i].asker)
	}
	l.waiting = l.waiting[n:]
	l.flight = f
	return f
}

// batch makes a batch that is on its way from a time on.
func (r *router) batch(laneID uint8, number uint64, made time.Time, commands []command.Command) *command.Batch {
	return &command.Batch{Sender: r.sender, Lane: laneID, Number: number, Made: events.MillisOf(made), Principal: r.principal, Commands: commands}
}

// dispatch sends a flight the best way there is now.
func (r *router) dispatch(f *flight) {
	if f == nil {
		return
	}
	if here, ok := r.owners.Load(f.shard); ok {
		if in := here.(*inbox); r.leaves(f, in, 1) {
			in.put(delivery{Batch: f.batch, reply: r.replyHere(f.shard)})
		}
		return
	}
	if r.bus != nil && r.connected.Load() {
		if !r.leaves(f, nil, 1) {
			return
		}
		if err := r.bus.Publish(shardSubject(f.shard), r.replySubject(f), f.bytes()); err == nil {
			return
		}
	}
	r.post(f)
}

func (r *router) replyHere(shard int) func(*command.Batch, []command.Answer, bool) {
	return func(b *command.Batch, answers []command.Answer, recorded bool) {
		r.answered(shard, b.Lane, b.Number, answers, recorded)
	}
}

func shardSubject(shard int) string { return "shard." + strconv.Itoa(shard) }

// withdraw takes back a command that has not been sent; false when it has.
func (r *router) withdraw(shard int, laneID uint8, c command.Command) bool {
	l := &r.lanes[shard][laneID]
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.waiting {
		if l.waiting[i].command == c {
			copy(l.waiting[1:i+1], l.waiting[:i]) // those that give up are mostly the first
			l.waiting[0] = call{}
			l.waiting = l.waiting[1:]
			return true
		}
	}
	return false
}

// serveHere makes an owner in this process the destination of its shard and sends it what is under way; in nil ends that.
func (r *router) serveHere(shard int, in *inbox) {
	if in == nil {
		r.owners.Delete(shard)
		for laneID := range r.lanes[shard] { // what the owner has not taken goes to the next one
			r.leave(shard, uint8(laneID))
		}
		return
	}
	in.from(&lanesHere{r, shard})
	r.owners.Store(shard, in)
	r.resendShard(shard)
}

// ownerHere returns the inbox of the owner in this process if it takes what waits in the lane by itself.
func (r *router) ownerHere(shard int, laneID uint8) *inbox {
	if laneID != command.LaneSubmit && laneID != command.LaneWork {
		return nil
	}
	in, _ := r.owners.Load(shard)
	here, _ := in.(*inbox)
	return here
}

// resendShard sends everything under way to a shard again: its owner has changed.
func (r *router) resendShard(shard int) {
	for laneID := range r.lanes[shard] {
		l := &r.lanes[shard][laneID]
		l.mu.Lock()
		f := l.flight
		if f != nil {
			f.sent, f.patient = time.Now(), false
		}
		l.mu.Unlock()
		r.dispatch(f)
	}
}

// run keeps trying what goes unanswered until ctx ends, and then fails everybody who waits.
func (r *router) run(ctx context.Context) error {
	ticker := time.NewTicker(busPatience / 5)
	defer ticker.Stop()
	defer r.failAll()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			r.resend(time.Now())
		}
	}
}

// busChanged learns whether the bus is connected. When it is not, answers may have been lost with it: what is under way
// is sent again through the store, without waiting for its turn.
func (r *router) busChanged(connected bool) {
	r.connected.Store(connected)
	if connected {
		return
	}
	for shard := range r.lanes {
		for laneID := range r.lanes[shard] {
			l := &r.lanes[shard][laneID]
			l.mu.Lock()
			if f := l.flight; f != nil {
				f.sent, f.patient = time.Time{}, false
			}
			l.mu.Unlock()
		}
	}
	if r.offers != nil {
		r.offers.hasten()
	}
}

func (r *router) resend(now time.Time) {
	var unanswered bool
	for shard := range r.lanes {
		for laneID := range r.lanes[shard] {
			l := &r.lanes[shard][laneID]
			l.mu.Lock()
			f := l.flight
			unanswered = unanswered || f != nil && now.Sub(f.began) > lookout.AliveFor && laneID != int(command.LaneWork) && f.awaited()
			if f == nil || now.Sub(f.sent) < f.patience() {
				l.mu.Unlock()
				continue
			}
			if laneID != int(command.LaneWork) && now.Sub(f.began) > giveUp {
				l.flight = nil
				l.mu.Unlock()
				f.fail(ErrUnknown)
				r.leave(shard, uint8(laneID))
				continue
			}
			toBus := f.patient // it was posted or parked long ago: begin with the fast way again
			f.sent, f.patient = now, !toBus
			l.mu.Unlock()
			if toBus {
				r.dispatch(f)
			} else {
				r.detour(f)
			}
		}
	}
	if unanswered {
		r.lookout.Doubtful()
	}
}

// missed tells callers who have waited for long that no node has been alive for as long, and returns when to look again, for the sake of
// others. What has left goes on, for whatever node comes.
func (r *router) missed(since time.Time) (again time.Duration) {
	long, now := time.Since(since), time.Since(clockBase)
	for shard := range r.lanes {
		for _, laneID := range []uint8{command.LaneSubmit, command.LaneQuery} {
			var unsent, sent flight
			l := &r.lanes[shard][laneID]
			overdue := func(c *call) bool {
				is := c.caller != nil && !c.awaits && min(long, now-c.since) >= lookout.Patience
				switch {
				case is || c.caller == nil:
				case !c.awaits:
					again = lookout.Again
				case again == 0:
					again = lookout.Later
				}
				return is
			}
			l.mu.Lock()
			l.waiting = slices.DeleteFunc(l.waiting, func(c call) bool {
				is := overdue(&c)
				if is {
					unsent.calls = append(unsent.calls, c)
				}
				return is
			})
			if l.flight != nil {
				for i := range l.flight.calls {
					if c := &l.flight.calls[i]; overdue(c) {
						sent.calls = append(sent.calls, *c)
						c.caller = nil
					}
				}
			}
			l.mu.Unlock()
			unsent.fail(errNoNode)
			if laneID == command.LaneQuery { // it changes nothing
				sent.fail(errNoNode)
			} else {
				sent.fail(fmt.Errorf("%w: %w", ErrUnknown, task.ErrNoNode))
			}
		}
	}
	return again
}

// errNoNode says why nothing was accepted, or answered.
var errNoNode = fmt.Errorf("%w: %w", ErrUnavailable, task.ErrNoNode)

// release lets what was held leave.
func (r *router) release() {
	for shard := range r.lanes {
		r.leave(shard, command.LaneSubmit)
		r.leave(shard, command.LaneQuery)
	}
}

// detour sends a flight through the store; to an owner in this process it goes directly, as ever.
func (r *router) detour(f *flight) {
	if f == nil {
		return
	}
	if _, ok := r.owners.Load(f.shard); ok || r.mailbox == nil {
		r.dispatch(f)
		return
	}
	r.post(f)
}

func (r *router) failAll() {
	r.closed.Store(true)
	for shard := range r.lanes {
		for laneID := range r.lanes[shard] {
			l := &r.lanes[shard][laneID]
			l.mu.Lock()
			f, waiting := l.flight, l.waiting
			l.flight, l.waiting = nil, nil
			l.mu.Unlock()
			if f != nil {
				f.fail(ErrUnknown)
			}
			(&flight{calls: waiting}).fail(ErrClosed)
		}
	}
}

// hint publishes what nobody depends on: whoever misses it finds out by other means.
func (r *router) hint(subject, reply string, data []byte) {
	if r.bus == nil || !r.connected.Load() {
		return
	}
	if err := r.bus.Publish(subject, reply, data); err != nil {
		r.log.Debug("hint not sent", "subject", subject, "err", err)
	}
}
