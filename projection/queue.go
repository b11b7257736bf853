package projection

import "iter"

// queue holds tasks by rank, or in no order when rank is nil. A task is in at most one queue and knows its place
// there, so that taking it out needs no search. What ranks a task must not change while it is in the queue.
//
// Most tasks come to a queue in the order in which they leave it: those stand in a line, and only the others are in
// a binary heap, of which every move looks at tasks that nobody has looked at for long.
type queue struct {
	line   line
	heap   []place
	rank   func(*Task) int64
	before func(a, b *Task) bool // of two tasks of one rank
}

// place is a task in the heap, with its rank beside it: comparing two places seldom looks at the tasks.
type place struct {
	rank int64
	task *Task
}

func (q *queue) len() int { return q.line.count + len(q.heap) }

func (q *queue) first() *Task {
	t := q.line.first()
	if len(q.heap) > 0 && (t == nil || q.less(q.heap[0], q.place(t))) {
		return q.heap[0].task
	}
	return t
}

// all yields the tasks of a queue in no order; the queue must not change meanwhile.
func (q *queue) all() iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for _, t := range q.line.tasks {
			if t != nil && !yield(t) {
				return
			}
		}
		for _, p := range q.heap {
			if !yield(p.task) {
				return
			}
		}
	}
}

func (q *queue) add(t *Task) {
	t.in = q
	if last := q.line.last(); last == nil || q.rank == nil || !q.less(q.place(t), q.place(last)) {
		q.line.add(t)
		return
	}
	q.heap = append(q.heap, q.place(t))
	q.up(len(q.heap) - 1)
}

func (q *queue) remove(t *Task) {
	t.in = nil
	if q.line.has(t) {
		q.line.remove(t)
		return
	}
	i, last := int(t.at), len(q.heap)-1
	p := q.heap[last]
	q.heap[last] = place{}
	q.heap = q.heap[:last]
	if i < last {
		q.set(i, p)
		q.up(i)
		q.down(i)
	}
	if cap(q.heap) > 1024 && last < cap(q.heap)/4 {
		q.heap = append(make([]place, 0, 2*last), q.heap...)
	}
}

func (q *queue) place(t *Task) place { return place{q.rank(t), t} }

func (q *queue) set(i int, p place) {
	q.heap[i] = p
	p.task.at = uint32(i)
}

func (q *queue) less(a, b place) bool {
	if a.rank != b.rank {
		return a.rank < b.rank
	}
	return q.before(a.task, b.task)
}

func (q *queue) up(i int) {
	p := q.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(p, q.heap[parent]) {
			break
		}
		q.set(i, q.heap[parent])
		i = parent
	}
	q.set(i, p)
}

func (q *queue) down(i int) {
	p := q.heap[i]
	for {
		child := 2*i + 1
		if child >= len(q.heap) {
			break
		}
		if right := child + 1; right < len(q.heap) && q.less(q.heap[right], q.heap[child]) {
			child = right
		}
		if !q.less(q.heap[child], p) {
			break
		}
		q.set(i, q.heap[child])
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

// Finished tasks are held, and then forgotten, in the order in which their time is over.
func rankEnded(t *Task) int64     { return int64(t.heldFrom()) }
func rankKeepUntil(t *Task) int64 { return int64(t.keepUntil()) }
func byOutcome(a, b *Task) bool   { return a.Outcome < b.Outcome }

// Before reports whether ready task a starts before ready task b when there is one slot for both.
func Before(a, b *Task) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return byDue(a, b)
}
