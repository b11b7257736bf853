package engine

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

// delivery is a batch that has reached the owner, with the way back to its sender.
type delivery struct {
	*command.Batch
	reply  sender.ReplyFunc
	letter bool  // it came through the store
	posted int64 // revision of the letter
	held   bool  // its sender was told that the store has no room
}

// inbox gathers what an owner has to decide while an entry is under way. Its methods may be called concurrently.
type inbox struct {
	mu    sync.Mutex
	wake  signal.Signal // makes the owner take a turn
	here  *sender.Here  // the lanes of this process; nil before its sender knows the owner
	lanes [command.LaneCount][]delivery
	lost  []string // nodes seen to be gone

	fence atomic.Pointer[store.Ownership] // that letters are answered under; nil = under none
}

func newInbox() *inbox { return &inbox{wake: signal.New()} }

// Wake implements slots.Waiter and sender.Inbox.
func (i *inbox) Wake() { i.wake.Notify() }

// From implements sender.Inbox.
func (i *inbox) From(here *sender.Here) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.here = here
}

// Put implements sender.Inbox.
func (i *inbox) Put(b *command.Batch, reply sender.ReplyFunc) {
	i.put(delivery{Batch: b, reply: reply})
}

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
	i.wake.Notify()
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
	i.wake.Notify()
}

// gather lets whoever is ready to run add to the next entry.
func (i *inbox) gather() {
	i.mu.Lock()
	here := i.here
	i.mu.Unlock()
	if here != nil {
		here.Gather(i.size)
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
		n += i.here.Waiting()
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
		made = here.Now()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if here != nil {
		for _, lane := range sender.LanesHere {
			if b, reply := here.Depart(i, lane, made); b != nil {
				i.lanes[lane] = append(i.lanes[lane], delivery{Batch: b, reply: reply})
			}
		}
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
	i.wake.Notify()
}
