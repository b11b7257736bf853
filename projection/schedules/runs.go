package schedules

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
	"strings"

	"taskledger/events"
	"taskledger/internal/runid"
	"taskledger/projection/extension"
)

// TickRun returns the id of the run of a tick.
func TickRun(name string, tick events.Millis) events.TaskID {
	return runID(name, events.TickPrefix, tick)
}

// FillRun returns the id of the run of a tick in a backfill. One whose id is taken, by the run of an earlier backfill,
// say, has the other id, which tells when its backfill began.
func FillRun(name string, tick, again events.Millis) events.TaskID {
	id := runID(name, events.FillPrefix, tick)
	if again != 0 {
		id += events.TaskID(":" + strconv.FormatInt(int64(again), 10))
	}
	return id
}

func runID(name, prefix string, tick events.Millis) events.TaskID {
	return events.TaskID(name + "/" + prefix + strconv.FormatInt(int64(tick), 10))
}

// HandRun returns the id of a run that somebody asked for, by what tells it from others.
func HandRun(name, of string) events.TaskID {
	return events.TaskID(name + "/" + events.HandPrefix + of)
}

// tickRun returns the id of the run of a tick.
func (s *Schedule) tickRun(tick events.Millis) events.TaskID {
	if s.Plan.Names == events.NamesByUUID {
		return runid.OfTick(s.Name, tick)
	}
	return TickRun(s.Name, tick)
}

// fillRun returns FillRun by the rule of names.
func (s *Schedule) fillRun(tick, again events.Millis) events.TaskID {
	if s.Plan.Names == events.NamesByUUID {
		return runid.OfFill(s.Name, tick, again)
	}
	return FillRun(s.Name, tick, again)
}

// ByHand returns the id of a run that somebody asked for by the id that HandRun returns.
func (s *Schedule) ByHand(id events.TaskID) events.TaskID {
	if s.Plan.Names == events.NamesByUUID {
		_, of, _ := strings.Cut(string(id), events.HandPrefix)
		return runid.OfHand(s.Name, of)
	}
	return id
}

// saw learns of an event of a task.
func (s *Schedules) saw(t extension.Task, ev *events.Event) {
	if len(s.byName) == 0 {
		return
	}
	was, known := s.runs.Get(t.ID)
	if ev.Kind() == events.KindDeleted {
		if known {
			s.drop(t.ID, was, ev.At)
		}
		return
	}
	if !known && t.Final {
		return
	}
	is := was
	if !known {
		of := s.byName[t.ID.Affinity()]
		if of == nil || t.Run == 0 {
			return
		}
		is = run{schedule: of.Name, life: t.Life, of: t.Run}
	}
	is.active, is.bytes = !t.Final, t.Bytes
	switch {
	case !is.active:
		is.cancelled = false
	case ev.Kind() == events.KindCancelRequested:
		is.cancelled = true
	}
	s.change(t.ID, was, is, ev.At)
}

// change puts a run in the place of what it was; a run without a schedule was, or is, none.
func (s *Schedules) change(id events.TaskID, was, is run, now events.Millis) {
	of := s.byName[cmp.Or(is.schedule, was.schedule)]
	if was.schedule != "" {
		s.count(of, id, was, -1)
	}
	if is.schedule == "" {
		s.runs.Delete(id)
	} else {
		s.runs.Set(id, is)
		s.count(of, id, is, 1)
	}
	switch {
	case was.active && !is.active && of.active == 0:
		of.BusyUntil = now
	case is.active && !was.active && of.active == 1 && of.Next > of.CatchUp && !of.overlapped():
		of.BusyFrom = now
	}
	s.trim(of, now)
	s.reindex(of)
	s.bury(of)
}

// count counts a run, or with sign -1 counts it no more.
func (s *Schedules) count(of *Schedule, id events.TaskID, r run, sign int) {
	if r.active {
		of.active += sign
		if r.cancelled {
			of.cancelled += sign
		}
		if r.of == events.RunOfFill {
			of.filling += sign
		}
		return
	}
	of.keptBytes += int64(sign) * r.bytes
	s.keptBytes += int64(sign) * r.bytes
	at, found := slices.BinarySearchFunc(of.kept, r.life, func(k keptRun, life events.Ref) int {
		return cmp.Compare(k.life, life)
	})
	switch {
	case sign > 0:
		of.kept = slices.Insert(of.kept, at, keptRun{life: r.life, id: id, bytes: r.bytes})
	case found:
		of.kept = slices.Delete(of.kept, at, at+1)
	}
}

// drop forgets a run.
func (s *Schedules) drop(id events.TaskID, r run, now events.Millis) { s.change(id, r, run{}, now) }

// trim gives up ended runs that a schedule has more than it keeps, and what all schedules have too much.
func (s *Schedules) trim(of *Schedule, now events.Millis) {
	for most := of.keeps(); len(of.kept) > most; {
		s.giveUp(of)
	}
	for s.keptBytes > MaxKeptBytes {
		most := s.largest()
		s.giveUp(most)
		most.GaveUp = now
	}
}

// keeps returns how many ended runs the schedule keeps.
func (s *Schedule) keeps() int {
	if s.Ended {
		return 0
	}
	return int(s.Plan.Keep)
}

// largest returns the schedule whose ended runs take most.
func (s *Schedules) largest() (most *Schedule) {
	for _, of := range s.byName {
		if most == nil || of.keptBytes > most.keptBytes || of.keptBytes == most.keptBytes && of.Name < most.Name {
			most = of
		}
	}
	return most
}

// giveUp leaves the oldest ended run of a schedule to retention.
func (s *Schedules) giveUp(of *Schedule) {
	oldest := of.kept[0]
	r, _ := s.runs.Get(oldest.id)
	s.count(of, oldest.id, r, -1)
	s.runs.Delete(oldest.id)
	s.shard.Reconsider(oldest.id)
}

// holds reports whether a finished task is a run that is kept.
func (s *Schedules) holds(t extension.Task) bool {
	if s.runs.Len() == 0 {
		return false
	}
	_, kept := s.runs.Get(t.ID)
	return kept
}

// bury forgets an ended schedule that nothing is to be remembered of.
func (s *Schedules) bury(of *Schedule) {
	if of.Ended && of.active == 0 && len(of.Codes) == 0 {
		delete(s.byName, of.Name)
		s.bytes -= of.bytes()
	}
}

// endBytes bounds what the event that pauses a schedule adds to the entry of a failure: a name, the id of the run and
// a reason.
const endBytes = 64 + 2*events.MaxIDBytes + events.MaxNameBytes

// ended lets a pause follow when a tick's run fails for good, and the schedule is to be paused then.
func (s *Schedules) ended(t extension.Task, ev *events.Event) []events.Event {
	b, failed := ev.Body.(*events.Failed)
	if !failed || b.Run == 0 || b.Error.Code == events.CodeCancelled {
		return nil
	}
	of := s.Schedule(t.ID.Affinity())
	if t.Run != events.RunOfTick || of == nil || !of.Plan.PauseOnFailure || of.Paused != nil {
		return nil
	}
	return []events.Event{{
		Task: events.ScheduleRecord(of.Name),
		Seq:  of.Seq + 1,
		Prev: of.Last,
		Body: &events.SchedulePaused{
			Reason: events.Head("a run failed: "+b.Error.Code, events.MaxNameBytes),
			Failed: t.ID,
		},
	}}
}

// Active returns a run of a schedule that has not ended, the one that was created last; "" = there is none.
func (s *Schedules) Active(of *Schedule) (last events.TaskID) {
	if of.active == 0 {
		return ""
	}
	var life events.Ref
	for id, r := range s.all(of) {
		if r.active && r.life > life {
			life, last = r.life, id
		}
	}
	return last
}

// Runs yields the runs of a schedule that have not ended, and those that are kept.
func (s *Schedules) Runs(of *Schedule) iter.Seq[events.TaskID] {
	return func(yield func(events.TaskID) bool) {
		for id := range s.all(of) {
			if !yield(id) {
				return
			}
		}
	}
}

// all yields the runs of a schedule.
func (s *Schedules) all(of *Schedule) iter.Seq2[events.TaskID, run] {
	return func(yield func(events.TaskID, run) bool) {
		s.runs.Ascend(events.TaskID(of.Name+"/"), func(id events.TaskID, r run) bool {
			return id.Affinity() == of.Name && (r.schedule != of.Name || yield(id, r))
		})
	}
}
