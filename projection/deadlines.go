package projection

import "container/heap"

// deadlines holds the tasks whose run has a deadline, the earliest first.
type deadlines struct {
	tasks  []*Task // a binary heap
	places map[*Task]int
}

// keep gives the task its place by its deadline, or takes it out where there is none.
func (d *deadlines) keep(t *Task) {
	place, in := d.places[t]
	switch has := t.Deadline() != 0; {
	case has && in:
		heap.Fix(d, place)
	case has:
		heap.Push(d, t)
	case in:
		heap.Remove(d, place)
	}
}

// drop takes the task out.
func (d *deadlines) drop(t *Task) {
	if place, in := d.places[t]; in {
		heap.Remove(d, place)
	}
}

// Len implements heap.Interface.
func (d *deadlines) Len() int { return len(d.tasks) }

// Less implements heap.Interface.
func (d *deadlines) Less(i, j int) bool {
	a, b := d.tasks[i], d.tasks[j]
	if a.Deadline() != b.Deadline() {
		return a.Deadline() < b.Deadline()
	}
	return byCreation(a, b)
}

// Swap implements heap.Interface.
func (d *deadlines) Swap(i, j int) {
	d.tasks[i], d.tasks[j] = d.tasks[j], d.tasks[i]
	d.places[d.tasks[i]], d.places[d.tasks[j]] = i, j
}

// Push implements heap.Interface.
func (d *deadlines) Push(t any) {
	d.places[t.(*Task)] = len(d.tasks)
	d.tasks = append(d.tasks, t.(*Task))
}

// Pop implements heap.Interface.
func (d *deadlines) Pop() any {
	last := len(d.tasks) - 1
	t := d.tasks[last]
	d.tasks[last] = nil
	d.tasks = d.tasks[:last]
	delete(d.places, t)
	return t
}
