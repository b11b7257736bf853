package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"taskledger/events"
)

// ScheduleFold folds the schedules of a shard and their runs. It holds that the ticks of each are decided in order,
// each once and in time, with a cause that is true, and that a run stands in the entry of its tick, right behind it.
// The zero value has folded no event.
type ScheduleFold struct {
	byName map[string]*plan
	runs   map[events.TaskID]scheduleRun
	broken map[string]bool // schedules that had an illegal event: what follows tells nothing
	owed   owed
}

// owed is the event that an entry must have next.
type owed struct {
	run   events.TaskID    // that a decision has; "" = none
	of    events.RunOrigin // what makes the run
	pause events.TaskID    // the run whose failure pauses its schedule; "" = none
	entry uint64
}

// plan is a schedule, or one that has ended and has runs that have not.
type plan struct {
	seq  uint64
	prev events.Ref

	def     *events.ScheduleSet
	version events.Ref
	by      string // principal of who set it
	ended   bool
	codes   bool // it remembers a definition in code, and so is not forgotten

	progress
	paused bool
	fill   *events.BackfillSet // under way; From is the tick that is decided next, Ticks counts those left

	filledSince events.Millis // when the last backfill began

	active    int           // runs that have not ended
	cancelled int           // of these: runs that somebody has cancelled
	filling   int           // of these: runs of backfills
	kept      []scheduleRun // that have ended and are kept, the oldest first
}

// progress tells how far the ticks of a schedule are decided, and what explains those without a run.
type progress struct {
	next        events.Millis // the tick that is decided next; 0 = none comes
	nextOffset  int64         // of the clocks of its zone then, in seconds
	decided     events.Millis
	shown       events.Millis // by the clocks of the zone when it was decided; 0 = no tick since setAt was
	setAt       events.Millis // when the definition came into the journal
	busyFrom    events.Millis // when a run began, and none went on
	busyUntil   events.Millis // until then a run had not ended
	pausedFrom  events.Millis
	pausedUntil events.Millis
	corrected   events.Millis // when the next tick was corrected last
	all         bool          // the misfire was all: ticks of that time may have their runs one after the other
}

// ScheduleState is a schedule after an event.
type ScheduleState struct {
	There      bool
	Definition *events.ScheduleSet
	Version    events.Ref // the event that has set it
	Next, Last events.Millis
	Paused     bool
	Left       int // ticks of a backfill that are not decided; -1 = none is under way
	Active     int
	Cancelled  int  // of the active runs
	CatchesUp  bool // ticks may have to wait until no run is active, whatever the overlap
}

// Schedule returns a schedule as it is.
func (s *ScheduleFold) Schedule(name string) ScheduleState {
	p := s.alive(name)
	if p == nil {
		return ScheduleState{Left: -1}
	}
	is := ScheduleState{
		There:      true,
		Definition: p.def,
		Version:    p.version,
		Next:       p.next,
		Last:       p.decided,
		Paused:     p.paused,
		Left:       -1,
		Active:     p.active,
		Cancelled:  p.cancelled,
		CatchesUp:  p.all,
	}
	if p.fill != nil {
		is.Left = int(p.fill.Ticks)
	}
	return is
}

// Broken reports whether a schedule had an illegal event.
func (s *ScheduleFold) Broken(name string) bool { return s.broken[name] }

// alive returns a schedule that has not ended, nil for none.
func (s *ScheduleFold) alive(name string) *plan {
	if p := s.byName[name]; p != nil && !p.ended {
		return p
	}
	return nil
}

// pays says what an event is not that its entry must have; "" for nothing.
func (s *ScheduleFold) pays(ev *events.Event) string {
	o := s.owed
	s.owed = owed{}
	switch b := ev.Body.(type) {
	case *events.Created:
		if o.pause == "" && (o.run == "" || ev.Task == o.run && ev.Position.Ref.Entry() == o.entry) {
			return ""
		}
	case *events.SchedulePaused:
		if o.run == "" && o.pause == b.Failed && (o.pause == "" || ev.Position.Ref.Entry() == o.entry) {
			return ""
		}
		if o == (owed{}) {
			return fmt.Sprintf("it is paused for run %s, which has not failed before it", b.Failed)
		}
	default:
		if o == (owed{}) {
			return ""
		}
	}
	if o.run != "" {
		return fmt.Sprintf("it stands where run %s of entry %d should be created", o.run, o.entry)
	}
	return fmt.Sprintf("it stands where the failure of run %s in entry %d should pause its schedule", o.pause, o.entry)
}

// Apply folds the next event of a schedule, or says what forbids it, "" for nothing; and returns the ended runs that
// are kept no more. there reports whether there is a task of an id.
func (s *ScheduleFold) Apply(ev *events.Event, there func(events.TaskID) bool) (problem string, givenUp []events.TaskID) {
	problem = s.pays(ev)
	name, err := events.ScheduleOf(ev.Task)
	if err != nil {
		return cmp.Or(problem, err.Error()), nil
	}
	if s.byName == nil {
		s.byName, s.runs, s.broken = map[string]*plan{}, map[events.TaskID]scheduleRun{}, map[string]bool{}
	}
	if problem == "" && !s.broken[name] {
		problem = s.judge(name, ev, there)
	}
	s.broken[name] = s.broken[name] || problem != ""
	s.fold(name, ev)
	return problem, s.trim(name)
}

// Lost lets every schedule go on anywhere: a part of the journal is lost.
func (s *ScheduleFold) Lost() {
	for name := range s.byName {
		s.broken[name] = true
	}
}

// judge says what forbids an event of a schedule.
func (s *ScheduleFold) judge(name string, ev *events.Event, there func(events.TaskID) bool) string {
	p := s.alive(name)
	b := events.DefinitionIn(ev.Body)
	sets := b != nil
	switch {
	case p == nil && !sets:
		return "there is no such schedule"
	case p == nil && (ev.Seq != 1 || ev.Prev != 0):
		return fmt.Sprintf("it begins with sequence %d after %d", ev.Seq, ev.Prev)
	case p != nil && (ev.Seq != p.seq+1 || ev.Prev != p.prev):
		return fmt.Sprintf("sequence %d after %d follows %d of %d", ev.Seq, ev.Prev, p.seq, p.prev)
	case sets && b.Plan.Cron == "" && b.Next != 0:
		return fmt.Sprintf("tick %d comes, and there is no expression", b.Next)
	case p == nil:
		return ""
	case sets:
		return p.judgeSet(ev, b)
	}
	switch b := ev.Body.(type) {
	case *events.Ticked:
		return p.judgeTick(ev, b, name, there)
	case *events.SchedulePaused:
		if p.paused {
			return "it was paused before"
		}
	case *events.ScheduleResumed:
		if !p.paused {
			return "it was not paused"
		}
	case *events.BackfillSet:
		if p.fill != nil {
			return "a second backfill"
		}
		if p.def.Plan.Cron == "" {
			return "a backfill of a schedule without ticks"
		}
	case *events.BackfillEnded:
		switch {
		case p.fill == nil:
			return "there is no backfill"
		case ev.Caller == events.Caller{} && p.fill.Ticks > 0 && p.fill.From != 0:
			return fmt.Sprintf("nobody ends a backfill of which %d ticks are left", p.fill.Ticks)
		}
	}
	return ""
}

// judgeSet says what forbids another definition: what is decided stays so, and a tick that is due is not passed over.
func (p *plan) judgeSet(ev *events.Event, b *events.ScheduleSet) string {
	is, was := &b.Plan, &p.def.Plan
	same := is.Cron == was.Cron && is.Zone == was.Zone && is.Start == was.Start && is.End == was.End
	switch {
	case *is == *was && slices.Equal(b.Params, p.def.Params) && b.Code == "":
		return "it is set to what it was"
	case b.Next != 0 && b.Next <= p.decided:
		return fmt.Sprintf("tick %d comes, and %d was decided", b.Next, p.decided)
	case same && p.next != 0 && p.next <= ev.At && (b.Next == 0 || b.Next > p.next):
		return fmt.Sprintf("tick %d comes, and %d is due and not decided", b.Next, p.next)
	}
	return ""
}

// fold changes a schedule by an event.
func (s *ScheduleFold) fold(name string, ev *events.Event) {
	p := s.byName[name]
	if p == nil {
		p = &plan{ended: true}
		s.byName[name] = p
	}
	p.seq, p.prev = ev.Seq, ev.Position.Ref
	if b := events.DefinitionIn(ev.Body); b != nil {
		if p.ended {
			p.ended, p.progress = false, progress{}
		}
		p.def, p.version, p.by = b, ev.Position.Ref, strings.Clone(ev.Caller.Principal)
		p.next, p.nextOffset, p.shown, p.setAt = b.Next, b.Offset, 0, ev.At
		p.all = p.all || b.Plan.Misfire == events.MisfireAll
		p.codes = p.codes || b.Code != ""
	}
	switch b := ev.Body.(type) {
	case *events.Ticked:
		p.tick(ev, b)
		if b.Run != "" {
			s.owed = owed{run: b.Run, of: events.RunOfTick, entry: ev.Position.Ref.Entry()}
			if b.Decision == events.TickFilled {
				s.owed.of = events.RunOfFill
			}
		}
	case *events.SchedulePaused:
		p.paused, p.pausedFrom = true, ev.At
	case *events.ScheduleResumed:
		p.paused, p.pausedUntil = false, ev.At
	case *events.BackfillSet:
		begun := *b
		p.fill, p.filledSince = &begun, ev.At
	case *events.BackfillEnded:
		p.fill = nil
	case *events.ScheduleEnded:
		p.ended, p.paused, p.fill, p.next = true, false, nil, 0
	}
}

// tick folds a decision.
func (p *plan) tick(ev *events.Event, b *events.Ticked) {
	switch b.Decision {
	case events.TickCorrected:
		p.next, p.nextOffset, p.corrected = b.Next, b.NextOffset, ev.At
	case events.TickFilled, events.TickNotFilled:
		if p.fill != nil {
			p.fill.From, p.fill.Ticks = b.Next, p.fill.Ticks-1
		}
	default:
		p.shown = 0
		if b.To >= p.setAt { // an owner heeds no clocks of a tick before its definition stood in the journal
			p.shown = p.shownUntil(b)
		}
		p.decided, p.next, p.nextOffset = b.To, b.Next, b.NextOffset
	}
}

// Lose judges a schedule no further, of which a run had an event that is corrupt.
func (s *ScheduleFold) Lose(run events.TaskID) {
	p := s.byName[run.Affinity()]
	if p != nil && (events.OriginOf(run) != 0 || p.def.Plan.Names == events.NamesByUUID) {
		s.broken[run.Affinity()] = true
	}
}
