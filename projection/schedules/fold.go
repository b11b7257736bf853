package schedules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"taskledger/events"
)

// fold applies the next event of a schedule. An error says why the state does not allow it; the state is then as it
// was.
func (s *Schedules) fold(ev *events.Event) error {
	name, err := events.ScheduleOf(ev.Task)
	if err != nil {
		return err
	}
	of := s.byName[name]
	if err := s.continues(of, ev); err != nil {
		return err
	}
	if of == nil {
		return s.begin(name, ev)
	}
	before := of.bytes()
	if err := s.apply(of, ev); err != nil {
		return err
	}
	of.Seq, of.Last = ev.Seq, ev.Position.Ref
	s.bytes += of.bytes() - before
	s.trim(of, ev.At)
	s.reindex(of)
	s.bury(of)
	s.forgetEnded()
	return nil
}

// continues returns an error unless an event is the next one of a schedule, nil for none.
func (s *Schedules) continues(of *Schedule, ev *events.Event) error {
	sets := events.DefinitionIn(ev.Body) != nil
	seq, prev := uint64(1), events.Ref(0)
	if of != nil && !of.Ended {
		seq, prev = of.Seq+1, of.Last
	}
	switch {
	case seq == 1 && !sets:
		return fmt.Errorf("%s of a schedule that is not there", ev.Kind())
	case ev.Seq != seq:
		return fmt.Errorf("sequence %d follows %d", ev.Seq, seq-1)
	case ev.Prev != prev:
		return fmt.Errorf("predecessor %d, the schedule's last event is %d", ev.Prev, prev)
	case prev != 0 && ev.Position.Ref <= prev:
		return fmt.Errorf("event %d stands before its predecessor %d", ev.Position.Ref, prev)
	case seq == 1 && s.alive >= MaxSchedules:
		return fmt.Errorf("%d schedules, want %d at most", s.alive+1, MaxSchedules)
	}
	return nil
}

// begin makes a schedule of its first event.
func (s *Schedules) begin(name string, ev *events.Event) error {
	of := &Schedule{Name: name, Ended: true, at: -1}
	if err := s.apply(of, ev); err != nil {
		return err
	}
	of.Seq, of.Last = ev.Seq, ev.Position.Ref
	s.byName[name] = of
	s.bytes += of.bytes()
	s.reindex(of)
	return nil
}

// apply changes a schedule by an event that continues it.
func (s *Schedules) apply(of *Schedule, ev *events.Event) error {
	if b := events.DefinitionIn(ev.Body); b != nil {
		if !of.Ended && b.Next != 0 && b.Next <= of.Decided {
			return fmt.Errorf("tick %d is to come, and %d is decided", b.Next, of.Decided)
		}
		s.set(of, ev, b)
		return nil
	}
	switch b := ev.Body.(type) {
	case *events.Ticked:
		return of.tick(ev, b)
	case *events.SchedulePaused:
		if of.Paused != nil {
			return errors.New("the schedule is paused already")
		}
		if !of.inPause() {
			of.PausedFrom = ev.At
		}
		of.Paused = &Pause{
			By:     strings.Clone(ev.Caller.Principal),
			Reason: strings.Clone(b.Reason), // the rest of the entry shall be freed
			Since:  ev.At,
			Failed: events.TaskID(strings.Clone(string(b.Failed))),
		}
	case *events.ScheduleResumed:
		if of.Paused == nil {
			return errors.New("the schedule is not paused")
		}
		of.Paused, of.PausedUntil = nil, ev.At
	case *events.BackfillSet:
		switch {
		case of.Fill != nil:
			return errors.New("a backfill is under way")
		case of.Plan.Cron == "":
			return errors.New("a backfill of a schedule without ticks")
		}
		of.Fill = &Fill{
			From:  b.From,
			To:    b.To,
			Next:  b.From,
			Ticks: b.Ticks,
			Left:  b.Ticks,
			By:    strings.Clone(ev.Caller.Principal),
			Since: ev.At,
		}
	case *events.BackfillEnded:
		if of.Fill == nil {
			return errors.New("no backfill is under way")
		}
		of.Fill = nil
	case *events.ScheduleEnded:
		s.end(of)
	default:
		return fmt.Errorf("%s is no event of a schedule", ev.Kind())
	}
	return nil
}

// set makes a schedule as an event defines it. What was decided of a schedule that goes on stays decided.
func (s *Schedules) set(of *Schedule, ev *events.Event, b *events.ScheduleSet) {
	if of.Ended {
		s.alive++
		*of = Schedule{
			Name:    of.Name,
			Codes:   of.Codes,
			counted: of.counted,
			at:      -1,
		}
	}
	of.Plan = b.Plan
	of.Plan.Cron, of.Plan.Zone = strings.Clone(b.Plan.Cron), strings.Clone(b.Plan.Zone)
	of.Plan.Behavior = strings.Clone(b.Plan.Behavior)
	of.Params = slices.Clone(b.Params)
	of.Set, of.SetAt, of.SetBy = ev.Position.Ref, ev.At, strings.Clone(ev.Caller.Principal)
	of.Next, of.NextOffset = b.Next, b.Offset
	if b.Code == "" {
		return
	}
	codes := slices.DeleteFunc(slices.Clone(of.Codes), func(code string) bool { return code == b.Code })
	codes = append(codes, strings.Clone(b.Code))
	of.Codes = codes[max(0, len(codes)-MaxCodes):]
}

// end ends a schedule. Its runs go on, and none is kept.
func (s *Schedules) end(of *Schedule) {
	s.alive--
	of.Ended = true
	of.Paused, of.Fill, of.Next = nil, nil, 0
	of.Params = nil
}

// tick applies a decision.
func (s *Schedule) tick(ev *events.Event, b *events.Ticked) error {
	switch b.Decision {
	case events.TickFilled, events.TickNotFilled:
		return s.fill(b)
	case events.TickCorrected:
		if s.Plan.Cron == "" || b.Next == s.Next || b.Next != 0 && b.Next <= s.Decided {
			return fmt.Errorf("tick %d is corrected to %d, the last decided one is %d", s.Next, b.Next, s.Decided)
		}
		s.Next, s.NextOffset, s.CorrectedAt = b.Next, b.NextOffset, ev.At
		return nil
	}
	switch {
	case s.Next == 0 || b.From != s.Next:
		return fmt.Errorf("tick %d is decided, the next one is %d", b.From, s.Next)
	case b.Next != 0 && b.Next <= b.To:
		return fmt.Errorf("tick %d follows %d", b.Next, b.To)
	case b.Decision == events.TickCreated && s.Paused != nil:
		return errors.New("a tick of a paused schedule has a run")
	}
	through := s.through(ev.At)
	s.Decided, s.Offset = b.To, b.ToOffset
	s.Next, s.NextOffset = b.Next, b.NextOffset
	if s.Plan.Misfire == events.MisfireAll && s.active == 0 && b.From > s.CatchUp && b.Next != 0 && b.Next <= through {
		s.CatchUp = through // what comes from then on is decided when its time has come
	}
	return nil
}

// fill applies a decision of a backfill.
func (s *Schedule) fill(b *events.Ticked) error {
	switch f := s.Fill; {
	case f == nil:
		return errors.New("no backfill is under way")
	case f.Left == 0 || f.Next == 0 || b.From != f.Next || b.To != b.From:
		return fmt.Errorf("tick %d of a backfill is decided, the next one is %d, and %d are left", b.From, f.Next, f.Left)
	case b.Next != 0 && (b.Next <= b.To || b.Next > f.To):
		return fmt.Errorf("tick %d of a backfill to %d follows %d", b.Next, f.To, b.To)
	}
	next := *s.Fill // a snapshot may have the one before
	next.Next = b.Next
	next.Left--
	s.Fill = &next
	return nil
}

// forgetEnded forgets ended schedules beyond those that are remembered, the one that ended first at the head.
func (s *Schedules) forgetEnded() {
	for len(s.byName)-s.alive > MaxEnded {
		var oldest *Schedule
		for _, of := range s.byName {
			if of.Ended && of.active == 0 && (oldest == nil || of.Last < oldest.Last) {
				oldest = of
			}
		}
		if oldest == nil {
			return
		}
		before := oldest.bytes()
		oldest.Codes = nil
		s.bytes += oldest.bytes() - before
		s.bury(oldest)
	}
}

// Knows reports whether a schedule remembers a hash of a definition in code, also one that has ended.
func (s *Schedules) Knows(name, code string) bool {
	of := s.byName[name]
	return of != nil && slices.Contains(of.Codes, code)
}
