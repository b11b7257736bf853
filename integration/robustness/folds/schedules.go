package folds

import (
	"fmt"

	"taskledger/events"
)

// Schedules folds the schedules of a shard: the ticks of each are decided in order, each once, and a run stands in the
// entry of its tick, right behind it. The zero value has folded no event.
type Schedules struct {
	byName map[string]*plan
	broken map[string]bool // schedules that had an illegal event: what follows tells nothing
	owed   events.TaskID   // the run that the last decision has; "" = none
	owes   uint64          // the entry of that decision
}

// plan is a schedule.
type plan struct {
	seq     uint64
	prev    events.Ref
	next    events.Millis // the tick that is decided next; 0 = none comes
	decided events.Millis
	paused  bool
	fill    *events.BackfillSet // under way; From is the tick that is decided next, Ticks counts those left
}

// Created judges an event that creates a task, or says what forbids it; "" for nothing.
func (s *Schedules) Created(ev *events.Event, b *events.Created) string {
	ran := s.owed
	s.owed = ""
	prefix := events.ScheduledPrefix(ev.Task)
	switch {
	case ran != "" && (ev.Task != ran || ev.Position.Ref.Entry() != s.owes):
		return fmt.Sprintf("it is created where run %s of entry %d should be", ran, s.owes)
	case ran == "" && (prefix == events.TickPrefix || prefix == events.FillPrefix):
		return "a run without its tick before it"
	case prefix != "" && b.Ties.Schedule != ev.Task.Affinity():
		return fmt.Sprintf("a run of schedule %q by its name, and of %q by its ties", ev.Task.Affinity(), b.Ties.Schedule)
	}
	return ""
}

// Between judges an event that creates no task.
func (s *Schedules) Between() string {
	if s.owed == "" {
		return ""
	}
	ran := s.owed
	s.owed = ""
	return fmt.Sprintf("it stands where run %s of entry %d should be created", ran, s.owes)
}

// Apply folds the next event of a schedule, or says what forbids it; "" for nothing.
func (s *Schedules) Apply(ev *events.Event) string {
	if problem := s.Between(); problem != "" {
		return problem
	}
	name, err := events.ScheduleOf(ev.Task)
	if err != nil {
		return err.Error()
	}
	if s.byName == nil {
		s.byName, s.broken = map[string]*plan{}, map[string]bool{}
	}
	if s.broken[name] {
		return ""
	}
	problem := s.apply(name, ev)
	s.broken[name] = problem != ""
	return problem
}

// Lost lets every schedule go on anywhere: a part of the journal is lost.
func (s *Schedules) Lost() {
	for name := range s.byName {
		s.broken[name] = true
	}
}

func (s *Schedules) apply(name string, ev *events.Event) string {
	p := s.byName[name]
	_, sets := ev.Body.(*events.ScheduleSet)
	switch {
	case p == nil && !sets:
		return "there is no such schedule"
	case p == nil && (ev.Seq != 1 || ev.Prev != 0):
		return fmt.Sprintf("it begins with sequence %d after %d", ev.Seq, ev.Prev)
	case p != nil && (ev.Seq != p.seq+1 || ev.Prev != p.prev):
		return fmt.Sprintf("sequence %d after %d follows %d of %d", ev.Seq, ev.Prev, p.seq, p.prev)
	case p == nil:
		p = &plan{}
		s.byName[name] = p
	}
	p.seq, p.prev = ev.Seq, ev.Position.Ref
	switch b := ev.Body.(type) {
	case *events.ScheduleSet:
		if b.Next != 0 && b.Next <= p.decided {
			return fmt.Sprintf("tick %d comes, and %d was decided", b.Next, p.decided)
		}
		p.next = b.Next
	case *events.Ticked:
		return s.tick(p, ev, b)
	case *events.SchedulePaused:
		return p.pause(true)
	case *events.ScheduleResumed:
		return p.pause(false)
	case *events.BackfillSet:
		if p.fill != nil {
			return "a second backfill"
		}
		begun := *b
		p.fill = &begun
	case *events.BackfillEnded:
		if p.fill == nil {
			return "there is no backfill"
		}
		p.fill = nil
	case *events.ScheduleEnded:
		delete(s.byName, name)
	}
	return ""
}

func (p *plan) pause(paused bool) string {
	if p.paused == paused {
		return fmt.Sprintf("paused %t before", paused)
	}
	p.paused = paused
	return ""
}

// tick folds a decision.
func (s *Schedules) tick(p *plan, ev *events.Event, b *events.Ticked) string {
	switch b.Decision {
	case events.TickCorrected:
		if b.Next != 0 && b.Next <= p.decided {
			return fmt.Sprintf("the next tick is corrected to %d, and %d was decided", b.Next, p.decided)
		}
		p.next = b.Next
		return ""
	case events.TickFilled, events.TickNotFilled:
		f := p.fill
		if f == nil || f.Ticks == 0 || b.From != f.From || b.To != b.From || b.Next != 0 && (b.Next <= b.To || b.Next > f.To) {
			return fmt.Sprintf("tick %d of a backfill is decided, which is %+v", b.From, f)
		}
		f.From, f.Ticks = b.Next, f.Ticks-1
		if b.Next == 0 {
			f.Ticks = 0
		}
	default:
		if p.next == 0 || b.From != p.next || b.To < b.From || b.Next != 0 && b.Next <= b.To {
			return fmt.Sprintf("ticks %d to %d are decided before %d, and the next one is %d", b.From, b.To, b.Next, p.next)
		}
		if b.Decision == events.TickCreated && p.paused {
			return "a tick has a run while the schedule is paused"
		}
		p.decided, p.next = b.To, b.Next
	}
	if b.Run != "" {
		s.owed, s.owes = b.Run, ev.Position.Ref.Entry()
	}
	return ""
}
