package stores

import (
	"slices"
	"time"
)

const (
	// maxWaiters bounds the senders that wait for groups, each of them once for each group: who comes later is told nothing, and asks again.
	maxWaiters = 10_000
	// forgetAfter is how long a sender is known that does not register again.
	forgetAfter = 5 * time.Second
	// claimWithin is how long a caller that was told has to claim: until then, or until somebody does, its item counts as taken.
	claimWithin = 100 * time.Millisecond
)

// Group names a group of a store.
type Group struct{ Store, Name string }

// Waiters is who waits. The zero value is that nobody does. One goroutine at a time may use it. Times are of a monotonic clock.
type Waiters struct {
	lines map[Group]*crowd
	count int           // of senders in lines
	swept time.Duration // when those were left out last who do not register again
}

// crowd is who waits for a group, in turn.
type crowd struct {
	senders []waiter
	told    []time.Duration // when callers were told that may not have claimed yet, in order
}

type waiter struct {
	sender string
	count  int64
	since  time.Duration // of the latest registration
}

// Set registers a sender with so many callers, in the place that it has; 0 takes it out.
func (w *Waiters) Set(g Group, sender string, count int64, now time.Duration) {
	if now-w.swept > forgetAfter {
		w.sweep(now)
	}
	l := w.lines[g]
	at := -1
	if l != nil {
		at = slices.IndexFunc(l.senders, func(s waiter) bool { return s.sender == sender })
	}
	switch {
	case at >= 0 && count > 0:
		l.senders[at].count, l.senders[at].since = count, now
	case at >= 0:
		w.remove(l, at)
		w.drop(g, l)
	case count > 0 && w.count < maxWaiters:
		if l == nil {
			if w.lines == nil {
				w.lines = map[Group]*crowd{}
			}
			l = &crowd{}
			w.lines[g] = l
		}
		l.senders = append(l.senders, waiter{sender, count, now})
		w.count++
	}
}

// remove takes a sender out of a line.
func (w *Waiters) remove(l *crowd, at int) {
	l.senders = slices.Delete(l.senders, at, at+1)
	w.count--
}

// drop forgets a crowd in which nobody waits. Who was told and claims later finds another one.
func (w *Waiters) drop(g Group, l *crowd) {
	if len(l.senders) == 0 {
		delete(w.lines, g)
	}
}

// None reports that nobody waits.
func (w *Waiters) None() bool { return w.count == 0 }

// Wake calls tell with one caller of a sender after the other, each sender in turn, as long as a group that has got
// items has some available for them. Who was told waits no more, until it registers again.
func (w *Waiters) Wake(now time.Duration, got Group, available int, tell func(sender string)) {
	l := w.lines[got]
	if l == nil {
		return
	}
	w.forget(l, now)
	for n := available - len(l.told); n > 0 && len(l.senders) > 0; n-- {
		s := &l.senders[0]
		tell(s.sender)
		l.told = append(l.told, now)
		if s.count--; s.count == 0 {
			w.remove(l, 0)
		} else {
			l.senders = append(l.senders[1:], *s)
		}
	}
	w.drop(got, l)
}

// sweep leaves out who has not registered for long, of all groups.
func (w *Waiters) sweep(now time.Duration) {
	w.swept = now
	for g, l := range w.lines {
		w.forget(l, now)
		w.drop(g, l)
	}
}

// Claimed says that an item of a group was claimed: by somebody who was told, most likely.
func (w *Waiters) Claimed(g Group) {
	if l := w.lines[g]; l != nil && len(l.told) > 0 {
		l.told = l.told[1:]
	}
}

// forget leaves out who has not registered for long, and who has had time to claim.
func (w *Waiters) forget(l *crowd, now time.Duration) {
	for at := len(l.senders) - 1; at >= 0; at-- {
		if now-l.senders[at].since > forgetAfter {
			w.remove(l, at)
		}
	}
	l.told = slices.DeleteFunc(l.told, func(at time.Duration) bool { return now-at > claimWithin })
}
