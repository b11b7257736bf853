package stores

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/item"
	"taskledger/task"
)

// A claim that finds nothing and may wait is parked. The owner of the store knows how many claims a sender has
// parked for a group, as soft state: senders register every second, and the owner forgets. It sends a hint when an
// item is there for one of them, which then claims by an ordinary command: a hint that is lost, or one too many,
// costs a moment. A client without a bus learns of items by registering, and a timer of its own wakes it when the
// next item falls due.

// sweepEvery is the time between two registrations.
const sweepEvery = time.Second

// queue holds the claims that are parked for a Group, the oldest first.
type queue struct {
	parked      []*parked
	known       int64 // of them, as the owner has it
	registering bool
	again       bool        // register once more, with what has changed meanwhile
	due         *time.Timer // wakes one when the next item falls due; nil = none
}

// parked is a claim that waits.
type parked struct{ woken chan struct{} }

// dependsEvery is the interval at which a claim that waits checks the items that it depends on.
const dependsEvery = 5 * time.Second

// Claim returns an item that is the caller's for a time, nil if there is none, or none came while it waited. It
// checks the items that it depends on when it begins, whenever it was woken, every few seconds, and once more at
// its end.
func (c *Client) Claim(ctx context.Context, store string, q *item.Claim) (*item.Item, error) {
	if err := cmp.Or(q.Validate(), command.Check(ClaimOf(store, q, 0))); err != nil {
		return nil, err
	}
	it, err := c.claim(ctx, store, q)
	if it != nil || err != nil || q.Wait <= 0 {
		return it, err
	}
	g := Group{store, q.Group}
	p := c.park(g)
	defer func() { c.leave(g, p) }()
	end := time.NewTimer(q.Wait)
	defer end.Stop()
	var recheck <-chan time.Time
	if len(q.Depends) > 0 {
		again := time.NewTicker(dependsEvery)
		defer again.Stop()
		recheck = again.C
	}
	for {
		select {
		case <-recheck:
			if it, err = c.claim(ctx, store, q); it != nil || err != nil {
				return it, err
			}
		case <-p.woken:
			if it, err = c.claim(ctx, store, q); err != nil {
				select { // the next claim in the queue takes the item
				case p.woken <- struct{}{}:
				default:
				}
			}
			if it != nil || err != nil {
				return it, err
			}
			c.register(g) // it has been taken off the owner's list
		case <-end.C:
			return c.claim(ctx, store, q)
		case <-c.draining:
			return nil, nil
		case <-c.closed:
			return nil, task.ErrClosed
		case <-ctx.Done():
			return nil, fmt.Errorf("store %s: no item was claimed: %w", store, context.Cause(ctx))
		}
	}
}

// park puts a claim at the end of its queue, and registers with the owner.
func (c *Client) park(g Group) *parked {
	p := &parked{make(chan struct{}, 1)}
	c.mu.Lock()
	l := c.queues[g]
	if l == nil {
		l = &queue{}
		c.queues[g] = l
	}
	l.parked = append(l.parked, p)
	c.mu.Unlock()
	c.register(g)
	return p
}

// leave takes a claim out of its queue. A claim that was woken meanwhile leaves the item to the next.
func (c *Client) leave(g Group, p *parked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.queues[g]
	l.parked = slices.DeleteFunc(l.parked, func(other *parked) bool { return other == p })
	select {
	case <-p.woken:
		l.wakeLocked(1)
	default:
	}
	switch {
	case len(l.parked) > 0:
		return
	case l.known > 0: // the owner would hint to this process at an item that others wait for
		c.registerLocked(g, l)
	case !l.registering:
		delete(c.queues, g)
	}
	l.stopLocked()
}

func (l *queue) stopLocked() {
	if l.due != nil {
		l.due.Stop()
		l.due = nil
	}
}

// wakeLocked wakes the n oldest claims that were not woken yet.
func (l *queue) wakeLocked(n int64) {
	for _, p := range l.parked {
		if n <= 0 {
			return
		}
		select {
		case p.woken <- struct{}{}:
			n--
		default:
		}
	}
}

// Hinted takes a hint that items are there.
func (c *Client) Hinted(data []byte) error {
	h, err := DecodeHint(data)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.queues[Group{h.Store, h.Group}]; l != nil {
		l.known -= h.Count
		l.wakeLocked(h.Count)
	}
	return nil
}

// fallsDue wakes a claim for an item whose time has come.
func (c *Client) fallsDue(l *queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.wakeLocked(1)
}

// Again registers all parked claims: their owner may have changed, or hints have been lost. It never blocks.
func (c *Client) Again() {
	c.mu.Lock()
	all := make([]Group, 0, len(c.queues))
	for g := range c.queues {
		all = append(all, g)
	}
	c.mu.Unlock()
	for _, g := range all {
		c.register(g)
	}
}

// register reports to the owner how many claims wait, with one question of a group at a time.
func (c *Client) register(g Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.queues[g]; l != nil && len(l.parked) > 0 {
		c.registerLocked(g, l)
	}
}

func (c *Client) registerLocked(g Group, l *queue) {
	switch {
	case c.ctx.Err() != nil:
	case l.registering:
		l.again = true
	default:
		l.registering = true
		c.calls.Go(func() { c.registerLoop(g, l) })
	}
}

// registerLoop registers until nothing has changed during the last registration.
func (c *Client) registerLoop(g Group, l *queue) {
	for {
		c.mu.Lock()
		waiting := int64(len(l.parked))
		l.again, l.known = false, waiting
		c.mu.Unlock()
		ctx, cancel := context.WithTimeout(c.ctx, registerFor)
		a, err := c.read(ctx, g.Store, &Await{
			Store:  g.Store,
			Group:  g.Name,
			Sender: c.cfg.Sender,
			Count:  waiting,
		})
		cancel()
		var counts Awaited
		if err == nil {
			counts, err = DecodeAwaited(a.Data)
		}
		if c.registered(g, l, counts, err) {
			return
		}
	}
}

// maxTimer bounds the timer for an item that falls due later. Every registration sets it again.
const maxTimer = time.Hour

// registerFor bounds a registration. The sweep makes another one.
const registerFor = 10 * time.Second

// registered takes the answer to a registration. It returns false if another one has to follow.
func (c *Client) registered(g Group, l *queue, a Awaited, err error) (done bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.cfg.Log.Debug("claims that wait are registered again in a second",
			"store", g.Store, "group", g.Name, "err", err)
	} else {
		l.wakeLocked(a.Available)
		l.stopLocked()
		if a.DueIn >= 0 && len(l.parked) > 0 {
			due := time.Duration(min(a.DueIn, maxTimer.Milliseconds())) * time.Millisecond
			l.due = time.AfterFunc(due, func() { c.fallsDue(l) })
		}
	}
	if l.again && c.ctx.Err() == nil {
		return false
	}
	l.registering = false
	if len(l.parked) == 0 {
		l.stopLocked()
		delete(c.queues, g)
	}
	return true
}
