package stores

import (
	"slices"
	"time"
)

const (
	// maxWaiters bounds the senders that wait for groups, each counted once for each group. A sender that comes
	// later gets no hints, and asks again.
	maxWaiters = 10_000
	// forgetAfter is the time after which a sender that does not register again is forgotten.
	forgetAfter = 5 * time.Second
	// claimWithin is the time that a notified caller has to claim: until then, or until somebody claims, its item
	// counts as taken.
	claimWithin = 100 * time.Millisecond
)

// Group names a group of a store.
type Group struct{ Store, Name string }

// Waiters holds the senders that wait for items. The zero value is empty. One goroutine at a time may use it. It
// reads times of a monotonic clock.
type Waiters struct {
	crowds map[Group]*crowd
	count  int           // of senders in crowds
	swept  time.Duration // when senders that do not register again were last removed
}

// crowd holds the senders that wait for a group, in turn.
type crowd struct {
	senders  []waiter
	notified []time.Duration // when callers that may not have claimed yet were notified, in order
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
	l := w.crowds[g]
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
			if w.crowds == nil {
				w.crowds = map[Group]*crowd{}
			}
			l = &crowd{}
			w.crowds[g] = l
		}
		l.senders = append(l.senders, waiter{sender, count, now})
		w.count++
	}
}

// remove takes a sender out of a crowd.
func (w *Waiters) remove(l *crowd, at int) {
	l.senders = slices.Delete(l.senders, at, at+1)
	w.count--
}

// drop forgets a crowd in which nobody waits. A notified caller that claims later finds another one.
func (w *Waiters) drop(g Group, l *crowd) {
	if len(l.senders) == 0 {
		delete(w.crowds, g)
	}
}

// None reports that nobody waits.
func (w *Waiters) None() bool { return w.count == 0 }

// Wake calls notify with the sender of one caller after the other, each sender in turn, as long as a group that has
// got items has some available for them. A notified caller waits no more, until its sender registers again.
func (w *Waiters) Wake(now time.Duration, got Group, available int, notify func(sender string)) {
	l := w.crowds[got]
	if l == nil {
		return
	}
	w.forget(l, now)
	for n := available - len(l.notified); n > 0 && len(l.senders) > 0; n-- {
		s := &l.senders[0]
		notify(s.sender)
		l.notified = append(l.notified, now)
		if s.count--; s.count == 0 {
			w.remove(l, 0)
		} else {
			l.senders = append(l.senders[1:], *s)
		}
	}
	w.drop(got, l)
}

// sweep removes the senders of all groups that have not registered for long.
func (w *Waiters) sweep(now time.Duration) {
	w.swept = now
	for g, l := range w.crowds {
		w.forget(l, now)
		w.drop(g, l)
	}
}

// Claimed notes that an item of a group was claimed, most likely by a notified caller.
func (w *Waiters) Claimed(g Group) {
	if l := w.crowds[g]; l != nil && len(l.notified) > 0 {
		l.notified = l.notified[1:]
	}
}

// forget removes the senders that have not registered for long, and the notified callers that have had time to claim.
func (w *Waiters) forget(l *crowd, now time.Duration) {
	for at := len(l.senders) - 1; at >= 0; at-- {
		if now-l.senders[at].since > forgetAfter {
			w.remove(l, at)
		}
	}
	l.notified = slices.DeleteFunc(l.notified, func(at time.Duration) bool { return now-at > claimWithin })
}
