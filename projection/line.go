package projection

// line holds tasks in the order in which they came. Any of them may leave it, at a cost that does not grow with the
// line: empty places are closed up when they are more than half of all.
type line struct {
	tasks []*Task // nil = an empty place; the last place is none
	head  int     // empty places before the first task
	count int     // of tasks
	begin uint32  // number of the first place; numbers wrap around
}

func (l *line) first() *Task {
	if l.count == 0 {
		return nil
	}
	return l.tasks[l.head]
}

func (l *line) last() *Task {
	if l.count == 0 {
		return nil
	}
	return l.tasks[len(l.tasks)-1]
}

func (l *line) add(t *Task) {
	t.at = l.begin + uint32(len(l.tasks))
	l.tasks = append(l.tasks, t)
	l.count++
}

// has reports whether the task is in the line, wherever else its place may be.
func (l *line) has(t *Task) bool {
	i := t.at - l.begin
	return i < uint32(len(l.tasks)) && l.tasks[i] == t
}

func (l *line) remove(t *Task) {
	l.tasks[t.at-l.begin] = nil
	l.count--
	if l.count == 0 {
		*l = line{tasks: l.tasks[:0], begin: l.begin}
		return
	}
	for l.tasks[l.head] == nil {
		l.head++
	}
	end := len(l.tasks)
	for l.tasks[end-1] == nil {
		end--
	}
	l.tasks = l.tasks[:end]
	if end > 2*l.count || cap(l.tasks) > 1024 && l.count < cap(l.tasks)/4 {
		l.closeUp()
	}
}

// closeUp gives up the empty places. Of the tasks it touches only those behind one that is not at the head.
func (l *line) closeUp() {
	before := l.tasks
	l.tasks = before[:0]
	if cap(before) > 1024 && l.count < cap(before)/4 {
		l.tasks = make([]*Task, 0, 2*l.count)
	}
	l.begin += uint32(l.head)
	for i, t := range before[l.head:] {
		if t == nil {
			continue
		}
		if len(l.tasks) < i {
			t.at = l.begin + uint32(len(l.tasks))
		}
		l.tasks = append(l.tasks, t)
	}
	clear(before[l.count:])
	l.head = 0
}
