package projection

import (
	"container/heap"

	"taskledger/events"
	"taskledger/projection/requests"
)

// failures are the tasks that have failed for good, in the order in which they are forgotten.
type failures struct {
	queue
	bytes int64 // that they take
}

// retention finds the task that is forgotten next of those that have ended with SUCCESS. A group keeps as many as the
// policy of the one says that expires first; beyond that, this one goes.
type retention struct {
	count   int      // tasks of all groups
	bytes   int64    // that they take
	order   groups   // those with finished tasks
	changed []*group // those whose finished tasks have changed since order was made
}

// groups is a heap of groups: first the one whose finished task expires first.
type groups []*group

func (g groups) Len() int { return len(g) }

func (g groups) Less(i, j int) bool {
	if g[i].expires != g[j].expires {
		return g[i].expires < g[j].expires
	}
	return g[i].outcome < g[j].outcome
}

func (g groups) Swap(i, j int) {
	g[i], g[j] = g[j], g[i]
	g[i].at, g[j].at = i, j
}

// Push and Pop are for container/heap.
func (g *groups) Push(x any) {
	added := x.(*group)
	added.at = len(*g)
	*g = append(*g, added)
}

func (g *groups) Pop() any {
	last := len(*g) - 1
	gone := (*g)[last]
	(*g)[last], gone.at = nil, -1
	*g = (*g)[:last]
	return gone
}

// add counts n finished tasks more in a group.
func (r *retention) add(g *group, n int) {
	r.count += n
	if !g.changed {
		g.changed = true
		r.changed = append(r.changed, g)
	}
}

// reorder gives a group its place in the order.
func (r *retention) reorder(g *group) {
	g.changed = false
	first := g.finished.first()
	if first == nil {
		if g.at >= 0 {
			heap.Remove(&r.order, g.at)
		}
		return
	}
	g.expires, g.outcome = first.keepUntil(), first.Outcome
	if g.at >= 0 {
		heap.Fix(&r.order, g.at)
	} else {
		heap.Push(&r.order, g)
	}
}

// nextExpiring forgets what a group has more than it keeps, and returns the finished task that expires first, nil if
// there is none.
func (s *Shard) nextExpiring() *Task {
	r := &s.retention
	for _, g := range r.changed {
		for t := g.finished.first(); t != nil && g.finished.len() > t.Kind.Policy.RetainCount; t = g.finished.first() {
			s.forget(t)
		}
		r.reorder(g)
	}
	clear(r.changed)
	r.changed = r.changed[:0]
	if len(r.order) == 0 {
		return nil
	}
	return r.order[0].finished.first()
}

// expire forgets what is past its time, and what is too much.
func (s *Shard) expire(now events.Millis) {
	f := &s.failed
	for t := f.first(); t != nil && (t.keepUntil() < now || f.len() > MaxFailures || f.bytes > MaxFailureBytes); t = f.first() {
		s.forget(t)
	}
	r := &s.retention
	for t := s.nextExpiring(); t != nil && (t.keepUntil() < now || r.count+f.len() > MaxFinished || r.bytes > MaxFinishedBytes); t = s.nextExpiring() {
		s.forget(t)
	}
	s.tellForgotten()
}

// forget removes a finished task.
func (s *Shard) forget(t *Task) {
	s.keepImage(t)
	s.weigh(t, -1)
	s.lift(t)
	s.delist(t)
	s.forgotten = append(s.forgotten, t)
}

// holds reports whether a finished task is held for its requests.
func (s *Shard) holds(t *Task) bool {
	return len(t.Requests) > 0 && s.steady.Since(t.heldFrom(), s.Time) <= holdRequests
}

// RequestsFull reports whether another request would make one forgotten that the task is held for, as of now.
func (s *Shard) RequestsFull(t *Task, now events.Millis) bool {
	return len(t.Requests) >= requests.Max && s.steady.Since(t.Requests[0].At, now) <= holdRequests
}

// release hands the tasks whose requests need them no longer to retention.
func (s *Shard) release() {
	for t := s.held.first(); t != nil && !s.holds(t); t = s.held.first() {
		s.weigh(t, -1)
		s.lift(t)
		s.place(t, s.Time)
		s.weigh(t, 1)
	}
}
