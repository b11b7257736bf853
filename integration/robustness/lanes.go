package main

import (
	"cmp"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// Limits of the timeline.
const (
	maxLanes = 80  // tasks
	maxMarks = 400 // of one kind in a lane
)

// lane holds what the report shows of one task.
type lane struct {
	task       string
	bad        bool // something was found
	operations []*history.Operation
	executions []*history.Execution
	events     []*events.Event
	accused    map[uint64]bool // entries
}

// mark is a call of a client, a call of a function, a committed event, or a fault.
type mark struct {
	from, to int64 // to is 0 where the end never came
	kind     string
	text     string
}

// timeline prints the lanes: tasks with findings first, then those with most operations. Marks stand by the time at
// which they begin; events stand where their owner's clock had them.
func (p *printer) timeline(run *history.Run, violations []check.Violation) {
	p.title("Timeline")
	lanes := lanesOf(run, violations)
	wall := wallOffset(run, lanes)
	for _, l := range lanes[:min(len(lanes), maxLanes)] {
		name := l.task
		if l.bad {
			name += " (violated)"
		}
		p.title("task " + name)
		for _, m := range l.marks(run, wall) {
			p.row(span(m.from), "to "+end(m.to), m.kind, m.text)
		}
	}
	if left := len(lanes) - maxLanes; left > 0 {
		p.title(fmt.Sprintf("%d further tasks are not shown.", left))
	}
}

// nameOf names the task of an event, or the record that is no task.
func nameOf(ev *events.Event) string {
	if of := ev.Kind().Record(); of != events.OfTask {
		return of.String()
	}
	return string(ev.Task)
}

// lanesOf gathers what happened to each task.
func lanesOf(run *history.Run, violations []check.Violation) []*lane {
	all := map[string]*lane{}
	of := func(task string) *lane {
		if all[task] == nil {
			all[task] = &lane{task: task, accused: map[uint64]bool{}}
		}
		return all[task]
	}
	for i := range run.Operations {
		if o := &run.Operations[i]; o.Task != "" {
			of(o.Task).operations = append(of(o.Task).operations, o)
		}
	}
	for i := range run.Executions {
		l := of(run.Executions[i].Task)
		l.executions = append(l.executions, &run.Executions[i])
	}
	for _, ev := range committed(run) {
		l := of(nameOf(ev))
		l.events = append(l.events, ev)
	}
	for i := range violations {
		if v := &violations[i]; v.Task != "" {
			of(v.Task).bad, of(v.Task).accused[v.Entry] = true, true
		}
	}
	lanes := make([]*lane, 0, len(all))
	for _, task := range sortedKeys(all) {
		lanes = append(lanes, all[task])
	}
	slices.SortStableFunc(lanes, func(a, b *lane) int {
		if a.bad != b.bad {
			if a.bad {
				return -1
			}
			return 1
		}
		return cmp.Compare(len(b.operations), len(a.operations))
	})
	return lanes
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

// wallOffset returns the time of the wall clock when the run began, in milliseconds: as recorded, else as if the last
// event had come with the end.
func wallOffset(run *history.Run, lanes []*lane) int64 {
	last := run.Info.EndWall
	if last == 0 {
		for _, l := range lanes {
			for _, ev := range l.events {
				last = max(last, int64(ev.At))
			}
		}
	}
	return last - run.Info.End/1e6
}

// marks returns what happened to the task, and the faults that were in force meanwhile, in the order in which they
// began.
func (l *lane) marks(run *history.Run, wall int64) (all []mark) {
	for _, o := range l.operations[:min(len(l.operations), maxMarks)] {
		all = append(all, mark{o.Call, o.Return, "call", describe(o)})
	}
	for _, x := range l.executions[:min(len(l.executions), maxMarks)] {
		all = append(all, mark{x.Begin, x.End, "run",
			fmt.Sprintf("attempt %d on %s, token %s: %s", x.Attempt, x.Node, x.Token, cmp.Or(brief(x.Outcome), "no outcome"))})
	}
	for _, ev := range l.events[:min(len(l.events), maxMarks)] {
		kind, at := "event", l.when(ev, wall)
		if l.accused[ev.Position.Ref.Entry()] {
			kind = "event, accused"
		}
		all = append(all, mark{at, at, kind, fmt.Sprintf("%s, event %d at %s, by its owner's clock %s", ev.Kind(), ev.Seq, ev.Position,
			ev.At.Time().Format("15:04:05.000"))})
	}
	first, last := bounds(all)
	for i := range run.Faults[:min(len(run.Faults), maxListed)] {
		if f := &run.Faults[i]; f.From <= last && (f.Until == 0 || f.Until >= first) {
			all = append(all, mark{f.From, f.Until, "fault", fmt.Sprintf("%s of %s: %s", f.Kind, f.Target, cmp.Or(f.Proof, "no proof"))})
		}
	}
	slices.SortStableFunc(all, func(a, b mark) int { return cmp.Compare(a.from, b.from) })
	return all
}

// bounds returns when the first of some marks begins, and the last one begins or ends.
func bounds(all []mark) (first, last int64) {
	for i, m := range all {
		if i == 0 {
			first = m.from
		}
		first, last = min(first, m.from), max(last, m.from, m.to)
	}
	return first, last
}

// when returns where an event stands: by its owner's clock, corrected by the call of a function that it led to.
func (l *lane) when(ev *events.Event, wall int64) int64 {
	at := (int64(ev.At) - wall) * 1e6
	for _, x := range l.executions {
		if x.Token == ev.Position {
			return min(at, x.Begin)
		}
	}
	return at
}

func describe(o *history.Operation) string {
	text := fmt.Sprintf("client %d: %s: %s", o.Client, o.Verb, o.Answer)
	if o.Verb == history.Submit && o.Joined {
		text += ", joined"
	}
	if o.Status != "" {
		text += fmt.Sprintf(", %s, attempt %d", o.Status, o.Attempt)
	}
	if o.Outcome != "" {
		text += ", outcome " + brief(o.Outcome)
	}
	if o.Error != "" {
		text += ", " + brief(o.Error)
	}
	return text
}

// end prints a time that may never have come.
func end(at int64) string {
	if at == 0 {
		return "no end"
	}
	return span(at)
}

// brief cuts a text for a row.
func brief(s string) string { return fmt.Sprintf("%.120s", s) }
