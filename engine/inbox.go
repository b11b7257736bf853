package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/yielder"
	"taskledger/store"
)

// delivery is a batch that has reached the owner, with the way back to its sender. reply may be called more than once and never blocks.
type delivery struct {
	*command.Batch
	reply  func(b *command.Batch, answers []command.Answer, recorded bool) // recorded: the answers are in the journal
	letter bool                                                            // it came through the store
	posted int64                                                           // revision of the letter
	held   bool                                                            // its sender was told that the store has no room
}

// inbox gathers what an owner has to decide while an entry is under way. Its methods may be called concurrently.
type inbox struct {
	mu    sync.Mutex
	wake  signal     // makes the owner take a turn
	here  *lanesHere // of the router in this process; nil before it knows the owner
	lanes [command.LaneCount][]delivery
	lost  []string // nodes seen to be gone

	fence atomic.Pointer[store.Ownership] // that letters are answered under; nil = under none
}

func newInbox() *inbox { return &inbox{wake: newSignal()} }

// Wake implements slots.Waiter.
func (i *inbox) Wake() { i.wake.notify() }

// mail is what an owner takes out of its inbox at once.
type mail struct {
	lanes [command.LaneCount][]delivery
	lost  []string
}

// put adds a delivery, in the place of a copy that waits and came the same way: senders repeat themselves for as long as an
// owner is held up, and the answer to a letter counts only for the latest one.
func (i *inbox) put(d delivery) {
	i.mu.Lock()
	if at := slices.IndexFunc(i.lanes[d.Lane], d.repeats); at >= 0 {
		i.lanes[d.Lane][at] = d
	} else {
		i.lanes[d.Lane] = append(i.lanes[d.Lane], d)
	}
	i.mu.Unlock()
	i.wake.notify()
}

func (d delivery) repeats(other delivery) bool {
	return d.Number == other.Number && d.Sender == other.Sender && d.letter == other.letter
}

// lose notes once that a node is gone: it is seen again and again until the owner has taken its turn.
func (i *inbox) lose(node string) {
	i.mu.Lock()
	if !slices.Contains(i.lost, node) {
		i.lost = append(i.lost, node)
	}
	i.mu.Unlock()
	i.wake.notify()
}

// from makes the owner take what waits in lanes of this process as well.
func (i *inbox) from(here *lanesHere) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.here = here
}

// gather lets whoever is ready to run add to the next entry, as long as somebody does and for yielder.Most: events per entry
// decide what a task costs.
func (i *inbox) gather() {
	i.mu.Lock()
	here := i.here
	i.mu.Unlock()
	if here == nil {
		return
	}
	began := time.Now()
	for had := -1; here.r.Yield(); {
		has := i.size()
		if has == had || time.Since(began) > yielder.Most {
			return
		}
		had = has
	}
}

// size is the number of commands and batches that wait.
func (i *inbox) size() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for lane := range i.lanes {
		n += len(i.lanes[lane])
	}
	if i.here != nil {
		n += i.here.waiting()
	}
	return n
}

// take empties the inbox; reuse gives back the slices of an earlier call.
func (i *inbox) take(reuse *mail) mail {
	i.mu.Lock()
	here := i.here
	i.mu.Unlock()
	var made time.Time
	if here != nil {
		made = here.r.now()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if here != nil {
		i.lanes = here.depart(i, i.lanes, made)
	}
	m := mail{i.lanes, i.lost}
	for lane := range i.lanes {
		clear(reuse.lanes[lane])
		i.lanes[lane] = reuse.lanes[lane][:0]
	}
	i.lost = nil
	return m
}

// putBack returns deliveries that did not fit into the entry, ahead of later ones.
func (i *inbox) putBack(lane uint8, rest []delivery) {
	if len(rest) == 0 {
		return
	}
	i.mu.Lock()
	i.lanes[lane] = append(append([]delivery(nil), rest...), i.lanes[lane]...)
	i.mu.Unlock()
	i.wake.notify()
}

// lanesHere are the lanes of a shard whose owner is in this process. It takes what waits in them when its turn begins, so
// that everything that has come until then shares an entry.
type lanesHere struct {
	r     *router
	shard int
}

func (h *lanesHere) waiting() (n int) {
	for _, laneID := range []uint8{command.LaneSubmit, command.LaneWork} {
		l := &h.r.lanes[h.shard][laneID]
		l.mu.Lock()
		n += len(l.waiting)
		l.mu.Unlock()
	}
	return n
}

// depart appends the next batches, which go into the inbox.
func (h *lanesHere) depart(in *inbox, lanes [command.LaneCount][]delivery, made time.Time) [command.LaneCount][]delivery {
	for _, laneID := range []uint8{command.LaneSubmit, command.LaneWork} {
		l := &h.r.lanes[h.shard][laneID]
		l.mu.Lock()
		f := h.r.nextFlight(l, h.shard, laneID, made)
		if f != nil {
			f.in, f.copies = in, 1
		}
		l.mu.Unlock()
		if f != nil {
			lanes[laneID] = append(lanes[laneID], delivery{Batch: f.batch, reply: h.r.replyHere(h.shard)})
		}
	}
	return lanes
}
