package projection

import "iter"

// queue holds tasks in a binary heap by rank, or in no order when rank is nil. A task is in at most one queue and knows
// its place there, so that taking it out needs no search. What ranks a task must not change while it is in the queue.
type queue struct {
	places []place
	rank   func(*Task) int64
	before func(a, b *Task) bool // of two tasks of one rank
}

// place is a task in a queue, with its rank beside it: comparing two places seldom looks at the tasks.
type place struct {
	rank int64
	task *Task
}

func (q *queue) len() int { return len(q.places) }

func (q *queue) first() *Task {
	if len(q.places) == 0 {
		return nil
	}
	return q.places[0].task
}

// all yields the tasks in no useful order; the queue must not change meanwhile.
func (q *queue) all() iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for _, p := range q.places {
			if !yield(p.task) {
				return
			}
		}
	}
}

func (q *queue) add(t *Task) {
	t.in, t.at = q, int32(len(q.places))
	p := place{task: t}
	if q.rank != nil {
		p.rank = q.rank(t)
	}
	q.places = append(q.places, p)
	q.up(len(q.places) - 1)
}

func (q *queue) remove(t *Task) {
	i, last := int(t.at), len(q.places)-1
	q.set(i, q.places[last])
	q.places[last] = place{}
	q.places = q.places[:last]
	t.in = nil
	if i < last {
		q.up(i)
		q.down(i)
	}
	if cap(q.places) > 1024 && last < cap(q.places)/4 {
		q.places = append(make([]place, 0, 2*last), q.places...)
	}
}

func (q *queue) set(i int, p place) {
	q.places[i] = p
	p.task.at = int32(i)
}

func (q *queue) less(a, b place) bool {
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return q.before(a.task, b.task)
}

func (q *queue) up(i int) {
	if q.rank == nil {
		return
	}
	p := q.places[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(p, q.places[parent]) {
			break
		}
		q.set(i, q.places[parent])
		i = parent
	}
	q.set(i, p)
}

func (q *queue) down(i int) {
	if q.rank == nil {
		return
	}
	p := q.places[i]
	for {
		child := 2*i + 1
		if child >= len(q.places) {
			break
		}
		if right := child + 1; right < len(q.places) && q.less(q.places[right], q.places[child]) {
			child = right
		}
		if !q.less(q.places[child], p) {
			break
		}
		q.set(i, q.places[child])
		i = child
	}
	q.set(i, p)
}

// Waiting tasks rank by the time they may start.
func rankDue(t *Task) int64      { return int64(t.Due) }
func byCreation(a, b *Task) bool { return a.Created < b.Created }

// Ready tasks start in the order of priority, ready time, sequence.
func rankPriority(t *Task) int64 { return -t.Priority }
func byDue(a, b *Task) bool {
	if a.Due != b.Due {
		return a.Due < b.Due
	}
	return byCreation(a, b)
}

// Finished tasks are forgotten in the order in which their time is over.
func rankKeepUntil(t *Task) int64 { return int64(t.keepUntil()) }
func byOutcome(a, b *Task) bool   { return a.Outcome < b.Outcome }

// Before reports whether ready task a starts before ready task b when there is one slot for both.
func Before(a, b *Task) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return byDue(a, b)
}
