package projection

import "iter"

// queue holds tasks in a binary heap, or in no order when before is nil. A task is in at most one queue and knows its
// place there, so that taking it out needs no search.
type queue struct {
	tasks  []*Task
	before func(a, b *Task) bool
}

func (q *queue) len() int { return len(q.tasks) }

func (q *queue) first() *Task {
	if len(q.tasks) == 0 {
		return nil
	}
	return q.tasks[0]
}

// all yields the tasks in no useful order; the queue must not change meanwhile.
func (q *queue) all() iter.Seq[*Task] {
	return func(yield func(*Task) bool) {
		for _, t := range q.tasks {
			if !yield(t) {
				return
			}
		}
	}
}

func (q *queue) add(t *Task) {
	t.in, t.at = q, int32(len(q.tasks))
	q.tasks = append(q.tasks, t)
	q.up(len(q.tasks) - 1)
}

func (q *queue) remove(t *Task) {
	i, last := int(t.at), len(q.tasks)-1
	q.set(i, q.tasks[last])
	q.tasks[last] = nil
	q.tasks = q.tasks[:last]
	t.in = nil
	if i < last {
		q.up(i)
		q.down(i)
	}
	if cap(q.tasks) > 1024 && last < cap(q.tasks)/4 {
		q.tasks = append(make([]*Task, 0, 2*last), q.tasks...)
	}
}

func (q *queue) set(i int, t *Task) {
	q.tasks[i] = t
	t.at = int32(i)
}

func (q *queue) up(i int) {
	if q.before == nil {
		return
	}
	for t := q.tasks[i]; i > 0; {
		parent := (i - 1) / 2
		if !q.before(t, q.tasks[parent]) {
			return
		}
		q.set(i, q.tasks[parent])
		q.set(parent, t)
		i = parent
	}
}

func (q *queue) down(i int) {
	if q.before == nil {
		return
	}
	for t := q.tasks[i]; ; {
		child := 2*i + 1
		if child >= len(q.tasks) {
			return
		}
		if right := child + 1; right < len(q.tasks) && q.before(q.tasks[right], q.tasks[child]) {
			child = right
		}
		if !q.before(q.tasks[child], t) {
			return
		}
		q.set(i, q.tasks[child])
		q.set(child, t)
		i = child
	}
}

// byDue orders waiting tasks by the time they may start.
func byDue(a, b *Task) bool {
	if a.Due != b.Due {
		return a.Due < b.Due
	}
	return a.Created < b.Created
}

// byPriority is the order in which ready tasks start: priority, ready time, sequence.
func byPriority(a, b *Task) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return byDue(a, b)
}

// byKeepUntil is the order in which finished tasks are forgotten.
func byKeepUntil(a, b *Task) bool {
	if x, y := a.keepUntil(), b.keepUntil(); x != y {
		return x < y
	}
	return a.Outcome < b.Outcome
}

// Before reports whether ready task a starts before ready task b when there is one slot for both.
func Before(a, b *Task) bool { return byPriority(a, b) }
