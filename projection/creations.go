package projection

import (
	"slices"
	"sort"

	"taskledger/events"
	"taskledger/task"
)

// stretchTasks bounds the tasks of a stretch.
const stretchTasks = 64

// creations holds every task of a shard, oldest first, in stretches. Any task may leave. It knows its place, so
// that taking it out needs no search, and no call moves more tasks than a stretch holds.
type creations struct {
	count   int        // of tasks
	order   []*stretch // oldest first
	numbers []*stretch // by number; nil = the number is free
	free    []uint32   // numbers
	spare   *stretch   // an empty one, so that a lone task that comes and goes does not make one anew each time
}

// stretch is tasks that were created one after the other. It sums up what they are, so that a search passes over it
// when none of them can match.
type stretch struct {
	tasks   [stretchTasks]*Task // oldest first; nil = it has left
	first   events.Ref          // no task of it, or of a later stretch, was created by an earlier event
	firstAt events.Millis       // or before this time

	behaviors, creators uint64                       // marks of those of its tasks, and maybe of others
	number              uint32                       // in creations.numbers
	used, count         uint8                        // places that were given, tasks
	statuses            [task.Failure + 1]uint8      // tasks that have it
	substatuses         [task.SubCancelled + 1]uint8 // in their places in the shard
}

// mark is a bit that stands for a text, and maybe for others.
func mark(text string) uint64 {
	sum := uint32(2166136261) // FNV-1a
	for i := range len(text) {
		sum = (sum ^ uint32(text[i])) * 16777619
	}
	return 1 << (sum >> 26)
}

// add takes the newest task.
func (c *creations) add(t *Task) {
	last := len(c.order) - 1
	if last < 0 || c.order[last].used == stretchTasks {
		c.order = append(c.order, c.begin(t))
		last++
	}
	c.order[last].put(t)
	c.count++
}

// begin returns an empty stretch that begins with a task.
func (c *creations) begin(t *Task) *stretch {
	s := c.spare
	if c.spare = nil; s == nil {
		s = &stretch{}
	}
	if n := len(c.free); n > 0 {
		s.number = c.free[n-1]
		c.free = c.free[:n-1]
		c.numbers[s.number] = s
	} else {
		s.number = uint32(len(c.numbers))
		c.numbers = append(c.numbers, s)
	}
	s.first, s.firstAt = t.Created, t.CreatedAt
	return s
}

func (s *stretch) put(t *Task) {
	t.row = s.number*stretchTasks + uint32(s.used)
	s.tasks[s.used] = t
	s.used++
	s.count++
	s.behaviors |= mark(t.Kind.Behavior)
	s.creators |= mark(t.Kind.Creator)
}

// of returns the stretch of a task, nil where it has left and was the last one.
func (c *creations) of(t *Task) *stretch { return c.numbers[t.row/stretchTasks] }

// sum adds a task that has a substatus to the sums of its stretch, or with sign -1 takes it away.
func (c *creations) sum(t *Task, substatus task.Substatus, sign int32) {
	if s := c.of(t); s != nil {
		s.statuses[t.Status] += uint8(sign)
		s.substatuses[substatus] += uint8(sign)
	}
}

// remove takes out a task that the sums of its stretch leave out.
func (c *creations) remove(t *Task) {
	s := c.of(t)
	s.tasks[t.row%stretchTasks] = nil
	s.count--
	c.count--
	if s.count <= stretchTasks/4 {
		c.closeUp(c.place(s.first))
	}
}

// place is the index of the last stretch that begins with a task of an event, or of an earlier one; -1 = there is
// none.
func (c *creations) place(ref events.Ref) int {
	return sort.Search(len(c.order), func(i int) bool { return c.order[i].first > ref }) - 1
}

// has reports whether a task was created by an event.
func (c *creations) has(ref events.Ref) bool {
	at := c.place(ref)
	if at < 0 {
		return false
	}
	return slices.ContainsFunc(c.order[at].tasks[:], func(t *Task) bool { return t != nil && t.Created == ref })
}

// closeUp drops a stretch that is empty, or pours it and a neighbor together that half a stretch has room for.
func (c *creations) closeUp(at int) {
	if c.order[at].count == 0 {
		c.drop(at)
		return
	}
	for older := max(at-1, 0); older <= at && older+1 < len(c.order); older++ {
		if a, b := c.order[older], c.order[older+1]; a.count+b.count <= stretchTasks/2 {
			a.pour(b)
			c.drop(older + 1)
			return
		}
	}
}

// pour moves the tasks of the next stretch into this one, behind its own.
func (s *stretch) pour(next *stretch) {
	own := s.tasks
	s.tasks, s.used, s.count, s.behaviors, s.creators = [stretchTasks]*Task{}, 0, 0, 0, 0
	for _, from := range []*[stretchTasks]*Task{&own, &next.tasks} {
		for _, t := range from {
			if t != nil {
				s.put(t)
			}
		}
	}
	for i, n := range next.statuses {
		s.statuses[i] += n
	}
	for i, n := range next.substatuses {
		s.substatuses[i] += n
	}
}

// drop gives up a stretch, of whose tasks none is in it.
func (c *creations) drop(at int) {
	s := c.order[at]
	c.numbers[s.number] = nil
	c.free = append(c.free, s.number)
	copy(c.order[at:], c.order[at+1:])
	c.order[len(c.order)-1] = nil
	c.order = c.order[:len(c.order)-1]
	*s = stretch{}
	c.spare = s
}

// walk goes through tasks, newest first. They must stay as they are meanwhile.
type walk struct {
	order []*stretch // those with tasks to come
	left  int        // places of the last of them
}

// before returns a walk through the tasks that were created before an event.
func (c *creations) before(ref events.Ref) walk {
	w := walk{order: c.order[:c.place(ref)+1]}
	if n := len(w.order); n > 0 {
		last := w.order[n-1]
		w.left = int(last.used)
		for w.left > 0 && (last.tasks[w.left-1] == nil || last.tasks[w.left-1].Created >= ref) {
			w.left--
		}
	}
	return w
}

// next returns the next task, nil after the last one.
func (w *walk) next() *Task {
	for len(w.order) > 0 {
		last := w.order[len(w.order)-1]
		for w.left > 0 {
			if w.left--; last.tasks[w.left] != nil {
				return last.tasks[w.left]
			}
		}
		if w.order = w.order[:len(w.order)-1]; len(w.order) > 0 {
			w.left = int(w.order[len(w.order)-1].used)
		}
	}
	return nil
}
