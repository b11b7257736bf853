package schedules

import (
	"cmp"
	"fmt"
	"slices"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/extension"
)

// sections returns the rows of the state, in the order in which they are stored. They are the arrays
//
//	schedules     [name, flags, plan, params, seq, last, set, set by, set at, [code ...], [next, offset], [decided, offset],
//	               [busy until, catch up, corrected at, paused until, gave up], [by, reason, since, failed], [from, to, next, ticks, left, by, since]]
//	scheduleruns  [id, name of the schedule, life, what made it, flags, bytes]
//
// The flag of a schedule is 1 for one that has ended. The arrays of a pause and of a backfill are empty where there is
// none. The flags of a run are 1 for one that has not ended and 2 for one that is cancelled.
func (s *Schedules) sections() []extension.Section {
	return []extension.Section{
		{Name: "schedules", List: s.list, Read: s.read},
		{Name: "scheduleruns", List: s.listRuns, Read: s.readRun},
	}
}

func (s *Schedules) list() (int, func(int, *wire.Writer)) {
	all := make([]Schedule, 0, len(s.byName))
	for _, of := range s.byName {
		all = append(all, *of)
	}
	slices.SortFunc(all, func(a, b Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return len(all), func(i int, w *wire.Writer) { all[i].encode(w) }
}

func (s *Schedule) encode(w *wire.Writer) {
	w.Array(15)
	w.Text(s.Name)
	w.Bool(s.Ended)
	s.Plan.Encode(w)
	w.Bytes(s.Params)
	w.Uint(s.Seq)
	w.Uint(uint64(s.Last))
	w.Uint(uint64(s.Set))
	w.Text(s.SetBy)
	w.Int(int64(s.SetAt))
	w.Array(len(s.Codes))
	for _, code := range s.Codes {
		w.Text(code)
	}
	w.Array(2)
	w.Int(int64(s.Next))
	w.Int(s.NextOffset)
	w.Array(2)
	w.Int(int64(s.Decided))
	w.Int(s.Offset)
	w.Array(7)
	w.Int(int64(s.BusyFrom))
	w.Int(int64(s.BusyUntil))
	w.Int(int64(s.CatchUp))
	w.Int(int64(s.CorrectedAt))
	w.Int(int64(s.PausedFrom))
	w.Int(int64(s.PausedUntil))
	w.Int(int64(s.GaveUp))
	if p := s.Paused; p == nil {
		w.Array(0)
	} else {
		w.Array(4)
		w.Text(p.By)
		w.Text(p.Reason)
		w.Int(int64(p.Since))
		w.Text(string(p.Failed))
	}
	f := s.Fill
	if f == nil {
		w.Array(0)
		return
	}
	w.Array(7)
	w.Int(int64(f.From))
	w.Int(int64(f.To))
	w.Int(int64(f.Next))
	w.Uint(uint64(f.Ticks))
	w.Uint(uint64(f.Left))
	w.Text(f.By)
	w.Int(int64(f.Since))
}

// decode reads what encode wrote.
func (s *Schedule) decode(r *wire.Reader) {
	r.ArrayOf(15)
	s.Name, s.Ended = r.Text(), r.Bool()
	s.Plan.Decode(r)
	s.Params, s.Seq, s.Last, s.Set = r.Bytes(), r.Uint(), events.Ref(r.Uint()), events.Ref(r.Uint())
	s.SetBy, s.SetAt = r.Text(), events.Millis(r.Int())
	n := r.Array()
	if n > MaxCodes {
		r.Fail("%d hashes of definitions", n)
		return
	}
	for range n {
		s.Codes = append(s.Codes, r.Text())
	}
	r.ArrayOf(2)
	s.Next, s.NextOffset = events.Millis(r.Int()), r.Int()
	r.ArrayOf(2)
	s.Decided, s.Offset = events.Millis(r.Int()), r.Int()
	switch n := r.Array(); n {
	case 5: // of before beginnings were kept: whatever was undecided is explained
		s.BusyUntil, s.CatchUp, s.CorrectedAt = events.Millis(r.Int()), events.Millis(r.Int()), events.Millis(r.Int())
		s.PausedUntil = events.Millis(r.Int())
	case 7:
		s.BusyFrom, s.BusyUntil = events.Millis(r.Int()), events.Millis(r.Int())
		s.CatchUp, s.CorrectedAt = events.Millis(r.Int()), events.Millis(r.Int())
		s.PausedFrom, s.PausedUntil = events.Millis(r.Int()), events.Millis(r.Int())
	default:
		r.Fail("times of %d values", n)
	}
	s.GaveUp = events.Millis(r.Int())
	switch n := r.Array(); n {
	case 0:
	case 4:
		s.Paused = &Pause{By: r.Text(), Reason: r.Text(), Since: events.Millis(r.Int()), Failed: events.TaskID(r.Text())}
	default:
		r.Fail("pause of %d values", n)
	}
	switch n := r.Array(); n {
	case 0:
	case 7:
		s.Fill = &Fill{From: events.Millis(r.Int()), To: events.Millis(r.Int()), Next: events.Millis(r.Int())}
		s.Fill.Ticks, s.Fill.Left = number(r), number(r)
		s.Fill.By, s.Fill.Since = r.Text(), events.Millis(r.Int())
	default:
		r.Fail("backfill of %d values", n)
	}
}

func number(r *wire.Reader) uint32 {
	n := r.Uint()
	if n > events.MaxBackfill {
		r.Fail("%d ticks of a backfill", n)
	}
	return uint32(n)
}

func (s *Schedules) read(r *wire.Reader) {
	of := &Schedule{at: -1}
	if of.decode(r); r.Err() != nil {
		return
	}
	if problem := of.problem(); problem != "" {
		r.Fail("schedule %q: %s", of.Name, problem)
		return
	}
	if s.byName[of.Name] != nil {
		r.Fail("schedule %q is there twice", of.Name)
		return
	}
	if !of.Ended {
		s.alive++
	}
	s.byName[of.Name] = of
	s.bytes += of.bytes()
	s.restoring.last = max(s.restoring.last, of.Last)
}

// problem says what keeps the schedule from being the fold of events, "" if nothing does.
func (s *Schedule) problem() string {
	if err := events.ValidateSchedule(s.Name); err != nil {
		return err.Error()
	}
	if err := s.Plan.Check(); err != nil {
		return err.Error()
	}
	switch {
	case s.Seq == 0 || s.Set == 0 || s.Set > s.Last:
		return "it has no events, or was set after its last one"
	case s.Ended && (s.Paused != nil || s.Fill != nil || s.Next != 0 || s.Params != nil):
		return "ended, and yet something is to come"
	case s.Next < 0 || s.Next > events.MaxTick || s.Next != 0 && s.Next <= s.Decided:
		return "the next tick is no time, or was decided"
	case s.Plan.Cron == "" && s.Next != 0:
		return "a tick is to come, and there is no cron expression"
	case s.Fill != nil && (s.Fill.Left > s.Fill.Ticks || s.Fill.From > s.Fill.To):
		return "a backfill with more ticks left than it has, or of no time"
	}
	return ""
}

func (s *Schedules) listRuns() (int, func(int, *wire.Writer)) {
	all := s.runs.Copy()
	return all.Len(), func(i int, w *wire.Writer) {
		id, r, _ := all.GetAt(i)
		w.Array(6)
		w.Text(string(id))
		w.Text(r.schedule)
		w.Uint(uint64(r.life))
		w.Uint(uint64(r.of - 1))
		w.Uint(flag(r.active, 1) | flag(r.cancelled, 2))
		w.Int(r.bytes)
	}
}

func flag(is bool, bit uint64) uint64 {
	if is {
		return bit
	}
	return 0
}

func (s *Schedules) readRun(r *wire.Reader) {
	r.ArrayOf(6)
	id, name, life := events.TaskID(r.Text()), r.Text(), events.Ref(r.Uint())
	kind, flags, bytes := r.Uint(), r.Uint(), r.Int()
	is := run{
		schedule:  name,
		life:      life,
		of:        events.RunOrigin(kind + 1),
		active:    flags&1 != 0,
		cancelled: flags&2 != 0,
		bytes:     bytes,
	}
	of := s.byName[name]
	_, twice := s.runs.Get(id)
	switch {
	case r.Err() != nil:
	case of == nil || id.Validate() != nil || life == 0 || kind >= uint64(events.RunOfFill) || flags > 3 || bytes < 0 || bytes > MaxKeptBytes:
		r.Fail("run %q of schedule %q", id, name)
	case twice:
		r.Fail("run %q is there twice", id)
	case is.cancelled && !is.active, of.Ended && !is.active:
		r.Fail("run %q has ended, and is cancelled or of a schedule that has", id)
	default:
		s.runs.Set(id, is)
		s.count(of, id, is, 1)
		s.restoring.last = max(s.restoring.last, life)
	}
}

// restoring holds what only the reading of rows needs.
type restoring struct{ last events.Ref }

// restored completes the state after every row was read: that of an entry and its time.
func (s *Schedules) restored(entry uint64, now events.Millis) error {
	if s.restoring.last.Entry() > entry {
		return fmt.Errorf("a schedule or a run of event %d after entry %d", s.restoring.last, entry)
	}
	s.restoring = restoring{}
	if s.alive > MaxSchedules || s.keptBytes > MaxKeptBytes {
		return fmt.Errorf("%d schedules whose ended runs take %d bytes", s.alive, s.keptBytes)
	}
	for _, of := range s.byName {
		if len(of.kept) > of.keeps() || of.Ended && of.active == 0 && len(of.Codes) == 0 {
			return fmt.Errorf("schedule %q keeps %d ended runs, or nothing", of.Name, len(of.kept))
		}
		s.reindex(of)
	}
	return nil
}
