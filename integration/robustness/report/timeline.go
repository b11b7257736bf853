package report

import (
	"cmp"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// Limits of the picture, so that a browser shows the page of any run.
const (
	maxLanes = 80  // tasks
	maxMarks = 400 // of one kind in a lane
	maxRows  = 6   // of marks that overlap
)

// Sizes in pixels.
const (
	narrowest = 1000
	widest    = 8000
	perSecond = 100
	rowHeight = 9
	eventRow  = 12
)

// timeline is the picture: time runs to the right, a lane for each fault and each task.
type timeline struct {
	Width  int
	Ticks  []tick
	Faults []band
	Lanes  []lane
	Left   int // tasks that are not shown
}

type tick struct {
	X    int
	Text string
}

// band is a fault. It stands behind every lane as well.
type band struct {
	X, Width int
	Name     string
	Title    string
	Idle     bool // nothing shows that it bit
}

type lane struct {
	Task   string
	Bad    bool // something was found
	Height int
	Marks  []mark
}

// mark is a call of a client, a call of a function, or a committed event.
type mark struct {
	Class    string
	X, Y     int
	Width    int
	Height   int
	Title    string
	from, to int64
}

// scale turns times of the run into pixels.
type scale struct {
	end   int64
	width int
}

func (s scale) x(at int64) int {
	return int(float64(min(max(at, 0), s.end)) / float64(s.end) * float64(s.width))
}

// story holds what the page shows of one task.
type story struct {
	task       string
	bad        bool
	operations []*history.Operation
	executions []*history.Execution
	events     []*events.Event
	accused    map[uint64]bool // entries
}

func draw(run *history.Run, violations []check.Violation) timeline {
	end := max(run.Info.End, 1)
	for i := range run.Operations {
		end = max(end, run.Operations[i].Return, run.Operations[i].Call)
	}
	s := scale{end, int(min(max(end/1e9*perSecond, narrowest), widest))}
	t := timeline{Width: s.width}
	for i := range 11 {
		at := end / 10 * int64(i)
		t.Ticks = append(t.Ticks, tick{s.x(at), span(at)})
	}
	for i := range run.Faults[:min(len(run.Faults), maxListed)] {
		f := &run.Faults[i]
		until := f.Until
		if until == 0 {
			until = end
		}
		t.Faults = append(t.Faults, band{X: s.x(f.From), Width: max(s.x(until)-s.x(f.From), 2), Idle: f.Proof == "", Name: f.Kind + " " + f.Target,
			Title: fmt.Sprintf("%s of %s, %s to %s: %s", f.Kind, f.Target, span(f.From), span(until), cmp.Or(f.Proof, "no proof"))})
	}
	stories := tell(run, violations)
	shown := stories[:min(len(stories), maxLanes)]
	t.Left = len(stories) - len(shown)
	wall := wallOffset(run, stories)
	for _, st := range shown {
		t.Lanes = append(t.Lanes, st.lane(s, wall))
	}
	return t
}

// nameOf is the task of an event, or the record that is no task.
func nameOf(ev *events.Event) string {
	if of := ev.Kind().Record(); of != events.OfTask {
		return of.String()
	}
	return string(ev.Task)
}

// tell gathers the story of each task: tasks with findings first, then those with most operations.
func tell(run *history.Run, violations []check.Violation) []*story {
	all := map[string]*story{}
	of := func(task string) *story {
		if all[task] == nil {
			all[task] = &story{task: task, accused: map[uint64]bool{}}
		}
		return all[task]
	}
	for i := range run.Operations {
		if run.Operations[i].Task == "" {
			continue
		}
		st := of(run.Operations[i].Task)
		st.operations = append(st.operations, &run.Operations[i])
	}
	for i := range run.Executions {
		st := of(run.Executions[i].Task)
		st.executions = append(st.executions, &run.Executions[i])
	}
	for _, ev := range committed(run) {
		st := of(nameOf(ev))
		st.events = append(st.events, ev)
	}
	for i := range violations {
		if v := &violations[i]; v.Task != "" {
			st := of(v.Task)
			st.bad = true
			st.accused[v.Entry] = true
		}
	}
	var stories []*story
	for _, st := range all {
		stories = append(stories, st)
	}
	slices.SortFunc(stories, func(a, b *story) int {
		if a.bad != b.bad {
			if a.bad {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(len(b.operations), len(a.operations)), cmp.Compare(a.task, b.task))
	})
	return stories
}

// committed returns the events that can be read, by shard in their order.
func committed(run *history.Run) (all []*events.Event) {
	if len(run.Members) == 0 {
		return nil
	}
	for _, records := range run.Members[0].Entries {
		for i := range records {
			e, err := events.Decode(records[i].Data)
			if err != nil {
				continue // the checkers say so
			}
			for j := range e.Events {
				all = append(all, &e.Events[j])
			}
		}
	}
	return all
}

// wallOffset is the time of the wall clock when the run began, in milliseconds: as recorded, else as if the last event
// had come with the end.
func wallOffset(run *history.Run, stories []*story) int64 {
	last := run.Info.EndWall
	if last == 0 {
		for _, st := range stories {
			for _, ev := range st.events {
				last = max(last, int64(ev.At))
			}
		}
	}
	return last - run.Info.End/1e6
}

// lane places the marks of a task: calls of clients above, calls of functions below them, and events at the bottom.
func (st *story) lane(s scale, wall int64) lane {
	var operations, executions []mark
	for _, o := range st.operations[:min(len(st.operations), maxMarks)] {
		operations = append(operations, mark{Class: "op " + string(o.Answer), Title: titleOf(o), from: o.Call, to: o.Return})
	}
	for _, x := range st.executions[:min(len(st.executions), maxMarks)] {
		executions = append(executions, mark{Class: "run", from: x.Begin, to: x.End,
			Title: fmt.Sprintf("attempt %d on %s, token %s: %s, %s to %s", x.Attempt, x.Node, x.Token, cmp.Or(brief(x.Outcome), "no outcome"), span(x.Begin), end(x.End))})
	}
	below := stack(operations, s, 2)
	below = stack(executions, s, below)
	l := lane{Task: st.task, Bad: st.bad, Marks: append(operations, executions...), Height: below + eventRow + 2}
	for _, ev := range st.events[:min(len(st.events), maxMarks)] {
		m := mark{Class: "event", X: s.x(st.when(ev, wall)) - 1, Y: below, Width: 3, Height: eventRow,
			Title: fmt.Sprintf("%s, event %d at %s, by its owner's clock %s", ev.Kind(), ev.Seq, ev.Position, ev.At.Time().Format("15:04:05.000"))}
		if st.accused[ev.Position.Ref.Entry()] {
			m.Class = "event accused"
		}
		l.Marks = append(l.Marks, m)
	}
	return l
}

// when returns where an event stands: by its owner's clock, corrected by the call of a function that it led to or that led
// to it.
func (st *story) when(ev *events.Event, wall int64) int64 {
	at := (int64(ev.At) - wall) * 1e6
	for _, x := range st.executions {
		if x.Token == ev.Position {
			return min(at, x.Begin)
		}
	}
	return at
}

// stack gives marks rows so that they do not cover each other, and returns where the next thing goes. What overlaps too
// often shares the last row.
func stack(marks []mark, s scale, top int) int {
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.from, b.from) })
	var free []int // by row: the first free pixel
	for i := range marks {
		m := &marks[i]
		to := m.to
		if to == 0 {
			to = s.end
			m.Class += " open"
		}
		m.X, m.Width, m.Height = s.x(m.from), max(s.x(to)-s.x(m.from), 3), rowHeight-2
		row := slices.IndexFunc(free, func(x int) bool { return x <= m.X })
		if row < 0 && len(free) < maxRows {
			row = len(free)
			free = append(free, 0)
		}
		if row < 0 {
			row = maxRows - 1
		}
		free[row] = m.X + m.Width + 1
		m.Y = top + row*rowHeight
	}
	return top + len(free)*rowHeight
}

func titleOf(o *history.Operation) string {
	title := fmt.Sprintf("client %d: %s: %s, %s to %s", o.Client, o.Verb, o.Answer, span(o.Call), end(o.Return))
	if o.Verb == history.Submit && o.Joined {
		title += ", joined"
	}
	if o.Status != "" {
		title += fmt.Sprintf(", %s, attempt %d", o.Status, o.Attempt)
	}
	if o.Outcome != "" {
		title += ", outcome " + brief(o.Outcome)
	}
	if o.Error != "" {
		title += ", " + brief(o.Error)
	}
	return title
}

// end is a time that may never have come.
func end(at int64) string {
	if at == 0 {
		return "no end"
	}
	return span(at)
}

// brief cuts a text for a title.
func brief(s string) string { return fmt.Sprintf("%.120s", s) }
