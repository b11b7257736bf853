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

	next    tick // the first undecided one, with the offset by which it was found
	decided tick // the last decided one, or when the schedule was set
	first   bool // none is decided since it was set
	through events.Millis
	correct bool // the next tick was found by another owner

	fill, fillTo events.Millis
}

// Ahead is the answer to a Question: what deciding the ticks of a schedule needs to know.
type Ahead struct {
	Name string
	set  events.Ref

	of      events.Millis // the first undecided tick
	through events.Millis // ticks were looked for up to then
	second  tick          // the first one after of

	newest tick // the last one that is not after through; of, if that itself is
	before tick // the one before newest, if newest is not of
	next   tick // the first one after newest

	first tick // of misfire all, the oldest of the newest ones, which have their runs
	older tick // the one before first, if first is not of

	corrects  bool // the first tick after the last decided one is not of
	corrected tick // that one; none, if none comes

	fill, fillNext tick // of a backfill, the tick that is next and the one after it
}

// tick is a tick with the offset of the time zone at it, in seconds east of UTC. The zero tick is none.
type tick struct {
	at     events.Millis
	offset int64
}

// Question returns what is to be found so that a schedule can be decided at a time. correct asks whether the next tick,
// which another owner has found, is the same by the data that there are.
func (s *Schedule) Question(now events.Millis, correct bool) Question {
	q := Question{
		Name:    s.Name,
		Plan:    s.Plan,
		set:     s.Set,
		next:    tick{s.Next, s.NextOffset},
		decided: tick{s.Decided, s.Offset},
		through: max(s.through(now), s.Next),
		correct: correct && s.Next != 0,
	}
	if s.Decided < s.SetAt {
		q.decided, q.first = tick{at: s.SetAt}, true
	}
	if s.Fill != nil {
		q.fill, q.fillTo = s.Fill.Next, s.Fill.To
	}
	return q
}

// through returns up to when ticks are decided together: a run that had not ended, and a pause, each explain those
// that were due meanwhile, and ticks that have their runs one after the other are told from those that came since.
func (s *Schedule) through(now events.Millis) events.Millis {
	switch due := s.due(); {
	case s.Next <= s.CatchUp:
		return min(s.CatchUp, now)
	case s.skips():
		now = min(s.BusyUntil, now)
	case s.inPause():
		now = min(s.PausedUntil, now)
	default:
		if due < s.PausedFrom {
			now = min(s.PausedFrom-1, now)
		}
		if due < s.BusyFrom && s.Plan.Overlap == events.OverlapForbid {
			now = min(s.BusyFrom-1, now)
		}
	}
	return max(now-s.Delay(), 0)
}

// lately bounds the age of an answer about ticks that were due when it was found: it may be used although another tick
// has come since, or the ticks of a schedule that fires more often than its owner takes turns would never be decided.
const lately events.Millis = 10_000

// Fits reports whether an answer still tells what deciding a schedule at a time needs.
func (a *Ahead) Fits(s *Schedule, now events.Millis) bool {
	if a == nil || a.set != s.Set {
		return false
	}
	if f := s.Fill; f != nil && a.fill.at != f.Next {
		return false
	}
	if s.Next == 0 {
		return true
	}
	through := s.through(now)
	late := a.through > a.of && a.through+lately >= through
	return a.of == s.Next && (a.through >= through || a.next.at == 0 || a.next.at > through || late)
}

// Find answers a question.
func Find(q Question, t Ticks) *Ahead {
	a := &Ahead{
		Name:    q.Name,
		set:     q.set,
		of:      q.next.at,
		through: q.through,
		fill:    q.tickAt(t, q.fill),
	}
	if q.fill != 0 {
		if next := t.Next(q.fill); next <= q.fillTo {
			a.fillNext = q.tickAt(t, next)
		}
	}
	if a.of == 0 {
		return a
	}
	if q.correct {
		if q.first {
			q.decided.offset = t.Offset(q.decided.at)
		}
		a.corrected = q.tickAt(t, firstAfter(t, q.decided))
		a.corrects = a.corrected.at != a.of
	}
	a.second = q.tickAt(t, firstAfter(t, q.next))
	a.newest, a.next = q.tickAt(t, a.prev(t, q.through+1)), a.second
	if a.newest.at > a.of {
		a.before, a.next = q.tickAt(t, a.prev(t, a.newest.at)), q.tickAt(t, t.Next(a.newest.at))
	}
	if q.Plan.Misfire == events.MisfireAll {
		a.findFirst(t, &q)
	}
	return a
}

// prev returns the last undecided tick before a time; the first one of all, if none that comes after it is before that
// time.
func (a *Ahead) prev(t Ticks, before events.Millis) events.Millis {
	if at := t.Prev(before); a.second.at != 0 && at >= a.second.at {
		return at
	}
	return a.of
}

// findFirst finds the newest undecided ticks, as many as have their runs.
func (a *Ahead) findFirst(t Ticks, q *Question) {
	first := a.newest.at
	for range maxCaughtUp - 1 {
		if first <= a.of {
			return
		}
		first = a.prev(t, first)
	}
	if first > a.of {
		a.first, a.older = q.tickAt(t, first), q.tickAt(t, a.prev(t, first))
	}
}

// tickAt returns the tick at a time, with the offset by the data by which it was found; 0 = none.
func (q *Question) tickAt(t Ticks, at events.Millis) tick {
	switch at {
	case 0:
		return tick{}
	case q.next.at:
		return q.next
	}
	return tick{at, t.Offset(at)}
}

// firstAfter returns the first tick after one, which was found by data that put the clocks of the zone its offset ahead
// of UTC. Of times that clocks show none is decided again under another offset.
func firstAfter(t Ticks, last tick) events.Millis {
	here := t.Offset(last.at)
	if here == last.offset || !t.Fixed() {
		return t.Next(last.at)
	}
	shown := last.at + events.Millis(last.offset)*1000
	next := t.Next(max(last.at, shown-events.Millis(here)*1000))
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
