package schedules

import "taskledger/events"

// Ticks are the ticks of a schedule between its start and its end, by the data of its time zone that somebody has.
type Ticks interface {
	// Next returns the first tick after a time, Prev the last one before; 0 = there is none.
	Next(after events.Millis) events.Millis
	Prev(before events.Millis) events.Millis
	// Offset returns how far the clocks of the zone are ahead of UTC at a time, in seconds.
	Offset(at events.Millis) int64
	// Fixed reports whether the ticks are at times that clocks show, and not at a distance from one another.
	Fixed() bool
}

// maxCaughtUp bounds the undecided ticks that have their runs with events.MisfireAll.
const maxCaughtUp = 100

// Question asks for what is to be found of a schedule beside the turns of its owner.
type Question struct {
	Name string
	Plan events.SchedulePlan
	set  events.Ref // the definition

	next, decided events.Millis
	offset        int64 // of the zone at decided, by who decided it
	through       events.Millis
	correct       bool // the next tick was found by another owner

	fill, fillTo events.Millis
}

// Ahead is the answer to a Question: what deciding the ticks of a schedule needs to know.
type Ahead struct {
	Name string
	set  events.Ref

	of      events.Millis // the first undecided tick
	through events.Millis // ticks were looked for up to then
	newest  events.Millis // the last of them that is not after through; of, if that itself is
	before  events.Millis // the tick before newest, if newest is not of
	recent  []events.Millis
	older   events.Millis // the tick before the first of recent, if recent does not begin with of
	next    events.Millis // the first tick after newest
	second  events.Millis // the first tick after of

	newestOffset, beforeOffset, nextOffset, secondOffset, olderOffset, recentOffset int64

	// corrected is the first tick after the last decided one, where that is not of.
	corrected       events.Millis
	correctedOffset int64
	corrects        bool

	fill, fillNext events.Millis
	fillOffset     int64
}

// Question returns what is to be found so that a schedule can be decided at a time. correct asks whether the next tick,
// which another owner has found, is the same by the data that there are.
func (s *Schedule) Question(now events.Millis, correct bool) Question {
	q := Question{
		Name:    s.Name,
		Plan:    s.Plan,
		set:     s.Set,
		next:    s.Next,
		decided: max(s.Decided, s.SetAt),
		offset:  s.Offset,
		through: max(s.through(now), s.Next),
		correct: correct && s.Next != 0,
	}
	if s.Decided < s.SetAt {
		q.offset = s.NextOffset
	}
	if s.Fill != nil {
		q.fill, q.fillTo = s.Fill.Next, s.Fill.To
	}
	return q
}

// through returns up to when ticks are decided together: a run that had not ended, and a pause, each explain those
// before their ends, and ticks that have their runs one after the other are told from those that came since.
func (s *Schedule) through(now events.Millis) events.Millis {
	switch {
	case s.Next <= s.CatchUp:
		return min(s.CatchUp, now)
	case s.skips():
		return min(s.BusyUntil, now)
	case s.Next <= s.PausedUntil:
		return min(s.PausedUntil, now)
	}
	return max(now-s.Delay(), 0)
}

// skips reports whether the next tick came while a run had not ended, and is skipped for that.
func (s *Schedule) skips() bool {
	return s.Plan.Overlap == events.OverlapForbid && s.Next > s.CatchUp && s.Next <= s.BusyUntil
}

// lately bounds the age of an answer about ticks that were due when it was found: it may be used although another tick
// has come since, or the ticks of a schedule that fires more often than its owner takes turns would never be decided.
const lately events.Millis = 10_000

// Fits reports whether an answer still tells what deciding a schedule at a time needs.
func (a *Ahead) Fits(s *Schedule, now events.Millis) bool {
	if a == nil || a.set != s.Set {
		return false
	}
	if f := s.Fill; f != nil && a.fill != f.Next {
		return false
	}
	if s.Next == 0 {
		return true
	}
	through := s.through(now)
	late := a.through > a.of && a.through+lately >= through
	return a.of == s.Next && (a.through >= through || a.next == 0 || a.next > through || late)
}

// Find answers a question.
func Find(q Question, t Ticks) *Ahead {
	a := &Ahead{Name: q.Name, set: q.set, of: q.next, through: q.through, fill: q.fill}
	if q.fill != 0 {
		if next := t.Next(q.fill); next != 0 && next <= q.fillTo {
			a.fillNext = next
		}
		a.fillOffset = t.Offset(q.fill)
	}
	if q.next == 0 {
		return a
	}
	if q.correct {
		a.corrected = firstAfter(t, q.decided, q.offset)
		a.correctedOffset = offset(t, a.corrected)
		a.corrects = a.corrected != q.next
	}
	a.newest = max(t.Prev(q.through+1), q.next)
	if a.newest > q.next {
		a.before = max(t.Prev(a.newest), q.next)
	}
	a.next, a.second = t.Next(a.newest), t.Next(a.of)
	if q.Plan.Misfire == events.MisfireAll {
		a.findRecent(t)
	}
	a.newestOffset, a.beforeOffset = offset(t, a.newest), offset(t, a.before)
	a.nextOffset, a.secondOffset = offset(t, a.next), offset(t, a.second)
	return a
}

// findRecent finds the newest ticks that are undecided, as many as have their runs.
func (a *Ahead) findRecent(t Ticks) {
	at := a.newest
	for range maxCaughtUp {
		a.recent = append(a.recent, at)
		if at <= a.of {
			return
		}
		at = max(t.Prev(at), a.of)
	}
	a.older = at
	a.olderOffset, a.recentOffset = offset(t, a.older), offset(t, a.recent[len(a.recent)-1])
}

func offset(t Ticks, at events.Millis) int64 {
	if at == 0 {
		return 0
	}
	return t.Offset(at)
}

// firstAfter returns the first tick after a decided one, which was found by data that put the clocks of the zone offset
// seconds ahead of UTC. Of times that clocks show none is decided again under another offset.
func firstAfter(t Ticks, decided events.Millis, offset int64) events.Millis {
	here := t.Offset(decided)
	if here == offset || !t.Fixed() {
		return t.Next(decided)
	}
	shown := decided + events.Millis(offset)*1000
	next := t.Next(max(decided, shown-events.Millis(here)*1000))
	for range maxShown {
		if next == 0 || next+events.Millis(t.Offset(next))*1000 > shown {
			return next
		}
		next = t.Next(next)
	}
	return next
}

// maxShown bounds the ticks that are passed over because clocks have shown their times: those within a change of the
// clocks.
const maxShown = 10_000
