package schedules

import (
	"container/heap"

	"taskledger/events"
)

// queue holds schedules by the time at which they are due.
type queue struct{ order byDue }

// first returns when the first one is due; 0 = none is there.
func (q *queue) first() events.Millis {
	if len(q.order) == 0 {
		return 0
	}
	return q.order[0].queued
}

// upTo returns the first one if it is due by now, else nil.
func (q *queue) upTo(now events.Millis) *Schedule {
	if due := q.first(); due == 0 || due > now {
		return nil
	}
	return q.order[0]
}

// set gives a schedule the place of a time; 0 = none.
func (q *queue) set(s *Schedule, due events.Millis) {
	was := s.queued
	s.queued = due
	switch {
	case was == 0 && due != 0:
		heap.Push(&q.order, s)
	case was != 0 && due == 0:
		heap.Remove(&q.order, s.at)
	case due != 0:
		heap.Fix(&q.order, s.at)
	}
}

// byDue is a heap: first the schedule that is due first.
type byDue []*Schedule

func (h byDue) Len() int { return len(h) }

func (h byDue) Less(i, j int) bool {
	if h[i].queued != h[j].queued {
		return h[i].queued < h[j].queued
	}
	return h[i].Name < h[j].Name
}

func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push and Pop are for container/heap.
func (h *byDue) Push(x any) {
	s := x.(*Schedule)
	s.at = len(*h)
	*h = append(*h, s)
}

func (h *byDue) Pop() any {
	last := len(*h) - 1
	gone := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return gone
}
