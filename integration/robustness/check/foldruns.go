package check

import (
	"cmp"
	"fmt"
	"slices"

	"taskledger/events"
)

// scheduleRun is a run of a schedule that has not ended, or is kept.
type scheduleRun struct {
	id        events.TaskID
	life      events.Ref // the event that created it
	active    bool
	cancelled bool // of an active one: somebody wants it to end
	origin    events.RunOrigin
}

// TaskState is a task after an event.
type TaskState struct {
	Life  events.Ref // the event that created it
	Final bool       // nothing will run again unless somebody asks
	Run   events.RunOrigin
}

// Judge holds an event of a task, before it is folded, to what schedules have decided, or says what forbids it; "" for
// nothing.
func (s *ScheduleFold) Judge(ev *events.Event) string {
	owed := s.owed
	if problem := s.pays(ev); problem != "" {
		return problem
	}
	switch b := ev.Body.(type) {
	case *events.Created:
		of := originOf(ev.Task, b)
		switch {
		case of == 0 && owed.run == "":
			return ""
		case owed.run == "" && of != events.RunByHand:
			return "a run without its tick before it"
		case owed.run != "" && of != owed.of:
			return fmt.Sprintf("a run of origin %d, which is %d", of, owed.of)
		}
		return s.judgeCreated(ev, b)
	case *events.Succeeded:
		if b.Next != 0 && (s.runs[ev.Task].origin != 0 || events.OriginOf(ev.Task) != 0) {
			return "a run of a schedule is to repeat by itself"
		}
	}
	return ""
}

// judgeCreated says what of a run is not as its schedule has it.
func (s *ScheduleFold) judgeCreated(ev *events.Event, b *events.Created) string {
	name := ev.Task.Affinity()
	p := s.alive(name)
	if p == nil {
		return "a run of a schedule that is not there"
	}
	d := &p.def.Plan
	of := originOf(ev.Task, b)
	want := events.Ties{Schedule: name, By: p.by}
	if d.Names == events.NamesByUUID {
		want.Run = of
	}
	own := of == events.RunByHand && b.Priority > 0 // who asks for a run may give it a priority
	switch {
	case s.broken[name]:
		return ""
	case p.active > 0 && d.Overlap != events.OverlapAllow:
		return fmt.Sprintf("a run is created, and %d have not ended", p.active)
	case b.Ties != want:
		return fmt.Sprintf("a run of %+v, which is of %+v", b.Ties, want)
	case b.Behavior != d.Behavior || b.Policy != d.Policy || b.Priority != d.Priority && !own, b.NotBefore != ev.At,
		!slices.Equal(b.Params, p.def.Params):
		return fmt.Sprintf("a run that is not as the definition of event %d has it", p.version)
	}
	return ""
}

// Replaces reports whether an event is a cancel by which a schedule makes room for a tick that is due.
func (s *ScheduleFold) Replaces(ev *events.Event) bool {
	p := s.alive(ev.Task.Affinity())
	return p != nil && mayCancel(ev) && ev.Caller == events.Caller{} && s.runs[ev.Task].active &&
		p.def.Plan.Overlap == events.OverlapReplace && !p.paused && p.next != 0 && p.next <= ev.At
}

// mayCancel reports whether an event may be of a cancel.
func mayCancel(ev *events.Event) bool {
	switch b := ev.Body.(type) {
	case *events.CancelRequested:
		return true
	case *events.Failed:
		return b.Error.Code == events.CodeCancelled
	case *events.Rescheduled:
		return b.At == 0
	}
	return false
}

// Task folds an event of a task, which is as the event left it, and returns the ended runs that are kept no more.
func (s *ScheduleFold) Task(ev *events.Event, t TaskState) (givenUp []events.TaskID) {
	name, was := ev.Task.Affinity(), s.runs[ev.Task]
	p := s.byName[name]
	if p == nil || t.Run == 0 {
		return nil
	}
	is := scheduleRun{
		id:        ev.Task,
		life:      t.Life,
		active:    !t.Final,
		cancelled: !t.Final && (was.cancelled || ev.Kind() == events.KindCancelRequested),
		origin:    t.Run,
	}
	switch {
	case ev.Kind() == events.KindDeleted:
		is = scheduleRun{}
	case was.id == "" && t.Final:
		return nil
	}
	p.count(was, -1)
	p.count(is, 1)
	if is.id == "" {
		delete(s.runs, ev.Task)
	} else {
		s.runs[ev.Task] = is
	}
	switch {
	case was.active && !is.active && p.active == 0:
		p.busyUntil = ev.At
	case is.active && !was.active && p.active == 1:
		p.busyFrom = ev.At
	}
	if b, failed := ev.Body.(*events.Failed); failed && p.pauses(t.Run, b) {
		s.owed = owed{pause: ev.Task, entry: ev.Position.Ref.Entry()}
	}
	return s.trim(name)
}

// pauses reports whether a failure pauses the schedule.
func (p *plan) pauses(of events.RunOrigin, b *events.Failed) bool {
	return b.Run != 0 && b.Error.Code != events.CodeCancelled && of == events.RunOfTick &&
		!p.ended && p.def.Plan.PauseOnFailure && !p.paused
}

// count counts a run, or with sign -1 counts it no more.
func (p *plan) count(r scheduleRun, sign int) {
	byLife := func(a, b scheduleRun) int { return cmp.Compare(a.life, b.life) }
	switch at, found := slices.BinarySearchFunc(p.kept, r, byLife); {
	case r.id == "":
	case r.active:
		p.active += sign
		if r.cancelled {
			p.cancelled += sign
		}
		if r.origin == events.RunOfFill {
			p.filling += sign
		}
	case sign > 0:
		p.kept = slices.Insert(p.kept, at, r)
	case found:
		p.kept = slices.Delete(p.kept, at, at+1)
	}
}

// trim gives up the ended runs that a schedule has more than it keeps, and forgets one that has ended with its runs.
func (s *ScheduleFold) trim(name string) (givenUp []events.TaskID) {
	p := s.byName[name]
	for most := p.keeps(); len(p.kept) > most; p.kept = p.kept[1:] {
		givenUp = append(givenUp, p.kept[0].id)
		delete(s.runs, p.kept[0].id)
	}
	if p.ended && p.active == 0 && !p.codes {
		delete(s.byName, name)
	}
	return givenUp
}

func (p *plan) keeps() int {
	if p.ended {
		return 0
	}
	return int(p.def.Plan.Keep)
}

// Holds reports whether an ended task is a run that is kept.
func (s *ScheduleFold) Holds(id events.TaskID) bool {
	_, held := s.runs[id]
	return held
}
