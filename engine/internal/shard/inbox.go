package shard

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/sender"
	"taskledger/engine/internal/signal"
	"taskledger/store"
)

// Delivery is a batch that has reached the owner, with the way back to its sender.
type Delivery struct {
	*command.Batch
	Reply  sender.ReplyFunc
	Stored bool  // it came through the store
	Posted int64 // revision of the message
	warned bool  // its sender has learned that the store has no room
}

// Inbox gathers what an owner has to decide while an entry is under way. Its methods may be called concurrently.
type Inbox struct {
	mu    sync.Mutex
	wake  signal.Signal // makes the owner take a turn
	here  *sender.Here  // the lanes of this process; nil before its sender knows the owner
	lanes [command.LaneCount][]Delivery
	lost  []string // nodes seen to be gone

	fence atomic.Pointer[store.Ownership] // under which messages are answered; nil: under none
}

// FenceOff lets messages be answered under an ownership alone.
func (i *Inbox) FenceOff(o store.Ownership) { i.fence.Store(&o) }

// Fence returns the ownership under which messages are answered; nil: under none.
func (i *Inbox) Fence() *store.Ownership { return i.fence.Load() }

// NewInbox returns an empty inbox.
func NewInbox() *Inbox { return &Inbox{wake: signal.New()} }

// Woken receives when the inbox has something new.
func (i *Inbox) Woken() <-chan struct{} { return i.wake }

// Wake implements slots.Waiter and sender.Inbox.
func (i *Inbox) Wake() { i.wake.Notify() }

// From implements sender.Inbox.
func (i *Inbox) From(here *sender.Here) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.here = here
}

// Put implements sender.Inbox.
func (i *Inbox) Put(b *command.Batch, reply sender.ReplyFunc) {
	i.Deliver(Delivery{Batch: b, Reply: reply})
}

// Mail holds what an owner takes out of its inbox at once.
type Mail struct {
	Lanes [command.LaneCount][]Delivery
	Lost  []string
}

// Deliver adds a delivery, in the place of a copy that waits and came the same way: senders repeat themselves for
// as long as an owner is held up, and the answer to a message counts only for the latest one.
func (i *Inbox) Deliver(d Delivery) {
	i.mu.Lock()
	if at := slices.IndexFunc(i.lanes[d.Lane], d.repeats); at >= 0 {
		i.lanes[d.Lane][at] = d
	} else {
		i.lanes[d.Lane] = append(i.lanes[d.Lane], d)
	}
	i.mu.Unlock()
	i.wake.Notify()
}

func (d Delivery) repeats(other Delivery) bool {
	return d.Number == other.Number && d.Sender == other.Sender && d.Stored == other.Stored
}

// Lose notes once that a node is gone: it is seen again and again until the owner has taken its turn.
func (i *Inbox) Lose(node string) {
	i.mu.Lock()
	if !slices.Contains(i.lost, node) {
		i.lost = append(i.lost, node)
	}
	i.mu.Unlock()
	i.wake.Notify()
}

// gather lets whoever is ready to run add to the next entry.
func (i *Inbox) gather() {
	i.mu.Lock()
	here := i.here
	i.mu.Unlock()
	if here != nil {
		here.Gather(i.size)
	}
}

// size is the number of commands and batches that wait.
func (i *Inbox) size() (n int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for lane := range i.lanes {
		n += len(i.lanes[lane])
	}
	if i.here != nil {
		n += i.here.Waiting()
	}
	return n
}

// Take empties the inbox; reuse gives back the slices of an earlier call.
func (i *Inbox) Take(reuse *Mail) Mail {
	i.mu.Lock()
	here := i.here
	i.mu.Unlock()
	var made time.Time
	if here != nil {
		made = here.Now()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if here != nil {
		for _, lane := range sender.LanesHere {
			if b, reply := here.Depart(i, lane, made); b != nil {
				i.lanes[lane] = append(i.lanes[lane], Delivery{Batch: b, Reply: reply})
			}
		}
	}
	m := Mail{i.lanes, i.lost}
	for lane := range i.lanes {
		clear(reuse.Lanes[lane])
		i.lanes[lane] = reuse.Lanes[lane][:0]
	}
	i.lost = nil
	return m
}

// putBack returns deliveries that did not fit into the entry, ahead of later ones.
func (i *Inbox) putBack(lane uint8, rest []Delivery) {
	if len(rest) == 0 {
		return
	}
	i.mu.Lock()
	i.lanes[lane] = append(append([]Delivery(nil), rest...), i.lanes[lane]...)
	i.mu.Unlock()
	i.wake.Notify()
}
