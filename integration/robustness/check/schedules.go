package check

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"taskledger/events"
	"taskledger/integration/robustness/history"
)

// checkSchedules holds what was asked of schedules, and told of them, against their events: each event names who asked
// for it, what was acknowledged has its event, reads tell the state of a moment, and no tick that can be decided waits.
func (c *checker) checkSchedules() {
	for _, name := range slices.Sorted(maps.Keys(c.schedules)) {
		s := c.schedules[name]
		if s.shard.broken || s.shard.schedules.Broken(name) {
			continue
		}
		c.checkAskedFor(s)
		c.checkRunsByHand(s)
		c.checkOrder(s)
		c.checkUndecided(s)
	}
	for i := range c.run.Operations {
		if o := &c.run.Operations[i]; o.Verb == history.ListSchedules && o.Answer == history.OK {
			c.checkListed(o)
		}
	}
}

// accuseSchedule records a violation of a schedule.
func (c *checker) accuseSchedule(invariant string, s *timetable, entry uint64, format string, args ...any) {
	c.accuse(invariant, s.asTask(), entry, format, args...)
}

// asTask returns a task that stands for the schedule where a violation names one.
func (s *timetable) asTask() *task {
	return &task{id: string(events.ScheduleRecord(s.name)), shard: s.shard}
}

// checkAskedFor holds that an event follows from what its caller asked for, and that a decision of a tick names nobody.
func (c *checker) checkAskedFor(s *timetable) {
	for i := range s.marks {
		m := &s.marks[i]
		switch ev := m.ev; {
		case ev == nil:
		case unasked(ev):
			by := ev.Caller
			if ev.Kind() == events.KindSchedulePaused { // a node tells of the failure
				by.Principal = ""
			}
			if by != (events.Caller{}) && events.DefinitionIn(ev.Body) == nil {
				const named = "%s (event %d) names %+v, and nobody asked for it"
				c.accuseSchedule(acknowledged, s, m.entry, named, ev.Kind(), ev.Seq, ev.Caller)
			}
		case !slices.ContainsFunc(s.operations, func(o *history.Operation) bool { return mayCause(o, ev) }):
			const other = "%s (event %d) names %+v, who did not ask for it"
			c.accuseSchedule(acknowledged, s, m.entry, other, ev.Kind(), ev.Seq, ev.Caller)
		}
	}
}

// mayCause reports whether an operation may have caused an event.
func mayCause(o *history.Operation, ev *events.Event) bool {
	if unasked(ev) || !mayHave(o, ev.Caller) {
		return false
	}
	call := o.Schedule
	if b := events.DefinitionIn(ev.Body); b != nil {
		return o.Verb == history.SetSchedule && defines(call, b) && o.Reason == reasonOf(ev.Body) &&
			(o.Answer != history.OK || call.Changed && call.Version == ev.Position.Ref)
	}
	switch b := ev.Body.(type) {
	case *events.SchedulePaused:
		return o.Verb == history.PauseSchedule
	case *events.ScheduleResumed:
		return o.Verb == history.ResumeSchedule
	case *events.ScheduleEnded:
		return o.Verb == history.DeleteSchedule
	case *events.BackfillSet:
		return o.Verb == history.Backfill && call.From <= b.From && b.To <= call.To &&
			(o.Answer != history.OK || call.Ticks == int(b.Ticks))
	case *events.BackfillEnded:
		return o.Verb == history.EndBackfill
	}
	return false
}

// reasonOf returns the reason of a definition, "" for none.
func reasonOf(body events.Body) string {
	if b, is := body.(*events.ScheduleDefined); is {
		return b.Reason
	}
	return ""
}

// defines reports whether a call asks for the definition of an event.
func defines(call *history.ScheduleCall, b *events.ScheduleSet) bool {
	if call.Plan == nil {
		return true
	}
	params, err := b.Params.JSON()
	return err == nil && *call.Plan == b.Plan && call.Params == string(params)
}

// checkRunsByHand holds that a run that somebody was told to have made, or to share, is one of the schedule.
func (c *checker) checkRunsByHand(s *timetable) {
	for _, o := range s.operations {
		if o.Verb != history.RunSchedule || o.Answer != history.OK {
			continue
		}
		t := c.task(o.Schedule.Run)
		made := func(st step) bool {
			if st.ev == nil || st.ev.Kind() != events.KindCreated {
				return false
			}
			as := o.Schedule.Priority == 0 || st.state.priority == o.Schedule.Priority
			return o.Joined || as && mayHave(o, st.ev.Caller)
		}
		switch id := events.TaskID(t.id); {
		case id.Affinity() != s.name || t.known() && !t.scheduled():
			c.accuseSchedule(acknowledged, s, 0, "a run by hand was told to be %q", t.id)
		case t.known() && !slices.ContainsFunc(t.steps, made):
			c.accuseSchedule(acknowledged, s, 0, "run %s was acknowledged, and there is none", t.id)
		}
	}
}

// checkOrder holds that what was asked of a schedule, and told, can be put in one order that the journal explains, as
// checkLinear does for a task.
func (c *checker) checkOrder(s *timetable) {
	ops := c.placesIn(s)
	if c.accused[s.asTask().id] || len(ops) == 0 || len(ops) == 1 && !impossible(ops) {
		return
	}
	switch porcupine.CheckOperationsTimeout(explained, ops, max(c.limit, time.Millisecond)) {
	case porcupine.Illegal:
		const disorder = "no order of what was asked of it, and told, is explained by the journal: %s"
		c.accuseSchedule(linear, s, 0, disorder, s.describe())
	case porcupine.Unknown:
		const unjudged = "schedule %s is not judged: no order of %d operations was found within %s"
		c.unjudged = append(c.unjudged, fmt.Sprintf(unjudged, s.name, len(ops), c.limit))
	}
}

// placesIn returns the operations that were told something, with the places that they can take among the marks.
func (c *checker) placesIn(s *timetable) (ops []porcupine.Operation) {
	k := clock{before: make([]int64, len(s.marks)), after: make([]int64, len(s.marks))}
	for i := range s.marks {
		k.before[i] = math.MaxInt64
		if at := s.shard.entries[s.marks[i].entry-1].at; at != 0 {
			k.before[i], k.after[i] = at, at
		}
	}
	for _, o := range s.operations {
		free := o.Answer == history.Absent && o.Verb == history.Backfill // it first reads what may be a moment old
		if o.Answer != history.OK && o.Answer != history.Absent || free {
			continue
		}
		p := &candidate{
			from:   k.least(o.Call),
			to:     k.most(o.Return),
			claims: make([]bool, len(s.marks)+1),
			fits:   make([]bool, len(s.marks)+1),
		}
		for at := range p.fits {
			p.claims[at], p.fits[at] = s.explains(o, at)
		}
		ops = append(ops, porcupine.Operation{Input: p, Call: o.Call, Return: o.Return})
	}
	return ops
}

// explains reports whether the mark before a place may be the operation's own event, and whether its answer is right
// there without one.
func (s *timetable) explains(o *history.Operation, at int) (claims, fits bool) {
	is, call := s.after(at), o.Schedule
	if o.Answer == history.Absent {
		return false, !is.There
	}
	seen := func(is ScheduleState) bool { return call.Seen == 0 || is.There && is.Version == call.Seen }
	claims = at > 0 && s.marks[at-1].ev != nil && mayCause(o, s.marks[at-1].ev) && seen(s.after(at-1))
	shared := o.Verb == history.RunSchedule && o.Joined // a run of the same key is, of whatever version
	if !is.There || !seen(is) && !shared {
		return claims, false
	}
	switch o.Verb {
	case history.SetSchedule:
		fits = !call.Changed && call.Version == is.Version && defines(call, is.Definition)
	case history.PauseSchedule:
		fits = is.Paused
	case history.ResumeSchedule:
		fits = !is.Paused
	case history.RunSchedule:
		fits = true
	case history.GetSchedule:
		fits = len(call.Shown) == 1 && shows(&call.Shown[0], s.name, is) && call.Shown[0].Active == is.Active
	}
	return claims, fits
}

// shows reports whether what an owner showed is a schedule as it was, but for its runs.
func shows(told *history.ShownSchedule, name string, is ScheduleState) bool {
	return told.Name == name && is.There && told.Version == is.Version && told.Next == is.Next &&
		told.Last == is.Last && told.Paused == is.Paused && told.Left == is.Left
}

// describe lists what was told of a schedule, in the order of the calls, and its events.
func (s *timetable) describe() (text string) {
	for _, o := range s.operations {
		if o.Answer == history.OK || o.Answer == history.Absent {
			text += fmt.Sprintf("%s %s [%d, %d] %+v; ", o.Verb, o.Answer, o.Call, o.Return, *o.Schedule)
		}
	}
	text += "events:"
	for _, m := range s.marks {
		if m.ev != nil {
			text += fmt.Sprintf(" %s", m.ev.Kind())
		}
	}
	return text
}

// checkListed holds that a list tells each schedule once, by name and as it was at some time, and all that were there
// when it began and have stayed.
func (c *checker) checkListed(o *history.Operation) {
	told, stale := map[string]bool{}, o.Call-c.run.Info.TTLMs*int64(time.Millisecond) // as for a list of tasks
	last := ""
	for i := range o.Schedule.Shown {
		shown := &o.Schedule.Shown[i]
		s := c.schedule(shown.Name)
		if shown.Name <= last {
			c.accuseSchedule(listed, s, 0, "the list of client %d tells it after %s", o.Client, last)
		}
		last, told[shown.Name] = shown.Name, true
		was := func(m mark) bool { return shows(shown, s.name, m.state) }
		if c.knows(s) && !slices.ContainsFunc(s.marks, was) {
			c.accuseSchedule(listed, s, 0, "the list of client %d tells it as it never was: %+v", o.Client, *shown)
		}
	}
	for name, s := range c.schedules {
		if c.knows(s) && !told[name] && s.stays(stale) {
			c.accuseSchedule(listed, s, 0, "the list of client %d has left it out", o.Client)
		}
	}
}

// knows reports whether the marks of a schedule are all there are.
func (c *checker) knows(s *timetable) bool {
	return !s.shard.broken && !s.shard.schedules.Broken(s.name)
}

// stays reports whether the schedule was there since a time, to the end.
func (s *timetable) stays(since int64) bool {
	there := false
	for i := range s.marks {
		at := s.shard.entries[s.marks[i].entry-1].at
		switch is := s.marks[i].state.There; {
		case !is && (at == 0 || at > since), is && !there && (at == 0 || at > since):
			return false
		default:
			there = is
		}
	}
	return there
}

// tickPromise bounds the time from when a tick is due until it is decided, outside of faults: a turn, and the second
// after which an owner that had no room tries again.
const tickPromise = IdlePromise + time.Second

// checkUndecided holds that no tick that is due and can be decided waits, outside of faults, until an owner serves no
// more. It judges schedules of UTC alone, of which every node knows the data.
func (c *checker) checkUndecided(s *timetable) {
	limit := tickPromise
	if c.run.Info.Kind == "real" {
		limit += idleSlack
	}
	if !c.timed() {
		return
	}
	excused := slices.Concat(c.disturbed(), c.heldRepetitions())
	end := c.served()
	for i, m := range s.marks {
		was := s.after(i)
		if !decidable(m.state) || decidable(was) && due(was) == due(m.state) {
			continue
		}
		until := end
		for _, later := range s.marks[i+1:] {
			if !decidable(later.state) || due(later.state) != due(m.state) {
				until = min(end, c.committed(s.shard, later.entry))
				break
			}
		}
		from := max(c.clock(due(m.state)), c.committed(s.shard, m.entry))
		for _, left := range (span{from, until}).without(excused) {
			if left.lasts() > limit {
				const waits = "tick %d was due and not decided for %s, from %s on"
				c.accuseLate(ended, s.asTask(), m.entry, waits, m.state.Next, left.lasts(), time.Duration(left.from))
			}
		}
	}
}

// due returns when the next tick of a schedule is due at the latest.
func due(is ScheduleState) events.Millis { return is.Next + is.Definition.Plan.Jitter }

// decidable reports whether the next tick of a schedule can be decided once it is due.
func decidable(is ScheduleState) bool {
	if !is.There || is.Paused || is.Next == 0 || is.Definition.Plan.Zone != "UTC" {
		return false
	}
	plan := &is.Definition.Plan
	switch {
	case is.Active == 0:
		return true
	case is.CatchesUp:
		return false
	case plan.Overlap == events.OverlapReplace:
		return is.Cancelled < is.Active // the others are cancelled now
	}
	return plan.Overlap == events.OverlapAllow
}

// served returns until when nodes served: after the faults the first one that leaves is the beginning of the end.
func (c *checker) served() int64 {
	end := cmp.Or(c.run.Info.Read, c.run.Info.End)
	for i := range c.run.Keys {
		if k := &c.run.Keys[i]; k.Node != "" && (k.Deleted || k.Draining) && k.At > c.run.Info.Healed {
			end = min(end, k.At)
		}
	}
	return end
}
