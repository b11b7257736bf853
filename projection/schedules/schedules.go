// Package schedules is the fold of the schedules of a shard and of their runs, and decides what becomes of ticks. It is
// pure: state follows from events, and events from the state, the time, and an Ahead that somebody found beside it.
package schedules

import (
	"cmp"
	"slices"

	"github.com/cespare/xxhash/v2"
	"github.com/tidwall/btree"

	"taskledger/events"
	"taskledger/projection/extension"
)

// Limits of what a shard holds.
const (
	// MaxSchedules bounds the schedules of a shard.
	MaxSchedules = events.MaxSchedules
	// MaxEnded bounds the ended schedules that are remembered for their definitions in code.
	MaxEnded = 1000
	// MaxCodes bounds the hashes of definitions in code that a schedule remembers.
	MaxCodes = 16
	// MaxActive bounds the runs of a schedule that have not ended.
	MaxActive = 1000
	// MaxKeptBytes bounds what the ended runs take that the schedules of a shard keep.
	MaxKeptBytes = 16 << 20
)

// Schedule is a schedule as it is in the state: read only.
type Schedule struct {
	Name   string
	Plan   events.SchedulePlan
	Params events.Payload
	Seq    uint64     // of Last
	Last   events.Ref // its last event
	Set    events.Ref // its last ScheduleSet: the version of its definition
	SetBy  string
	SetAt  events.Millis

	// Ended tells that it is gone, and remembered for its Codes or its runs alone.
	Ended bool
	// Codes are the hashes of its last definitions from code, the newest at the end.
	Codes []string

	Progress

	Paused *Pause // nil = it is not paused
	Fill   *Fill  // nil = no backfill is under way

	// GaveUp is the last time at which ended runs that it was to keep were given up for want of room; 0 = never.
	GaveUp events.Millis

	counted
	queued events.Millis // the time for which it has its place in the queue; 0 = it has none
	at     int           // its place in the queue; -1 = none
}

// Progress tells how far the ticks of a schedule are decided, and what explains those that have no run.
type Progress struct {
	Next       events.Millis // the first tick that is not decided; 0 = none comes
	NextOffset int64         // of the zone at Next, in seconds east of UTC
	Decided    events.Millis // the last tick that is decided; 0 = none
	Offset     int64         // of the zone at Decided

	BusyFrom    events.Millis // a run had not ended from then
	BusyUntil   events.Millis // until then
	CatchUp     events.Millis // ticks up to then have their runs one after the other
	CorrectedAt events.Millis // when Next was corrected last
	PausedFrom  events.Millis // when the last pause began
	PausedUntil events.Millis // and when it ended
}

// counted counts the runs of a schedule.
type counted struct {
	active    int       // that have not ended
	cancelled int       // of the active ones, those that somebody has cancelled
	filling   int       // of the active ones, those of backfills
	kept      []keptRun // that have ended and are kept, the oldest first
	keptBytes int64
}

// Pause says who paused a schedule, when and why.
type Pause struct {
	By, Reason string
	Since      events.Millis
	Failed     events.TaskID // the run whose failure paused it; "" = somebody did
}

// Fill is a backfill under way.
type Fill struct {
	From, To events.Millis // as asked for
	Next     events.Millis // the first tick that is not decided; 0 = none comes
	Ticks    uint32        // of all
	Left     uint32        // that are not decided, at most
	By       string
	Since    events.Millis
}

// Active is the number of runs that have not ended.
func (s *Schedule) Active() int { return s.active }

// Kept yields the ended runs that the schedule keeps, the newest first.
func (s *Schedule) Kept() []events.TaskID {
	all := make([]events.TaskID, 0, len(s.kept))
	for _, r := range slices.Backward(s.kept) {
		all = append(all, r.id)
	}
	return all
}

// Schedules are the schedules of a shard. They are not safe for concurrent use.
type Schedules struct {
	byName    map[string]*Schedule
	alive     int
	bytes     int64 // of definitions
	keptBytes int64 // of ended runs that are kept
	runs      btree.Map[events.TaskID, run]
	queue     queue
	due       map[string]struct{} // schedules whose time has come, by name
	shard     extension.Shard
	restoring restoring
}

// run is a task of a schedule that has not ended, or is kept. It is never changed: another one takes its place.
type run struct {
	schedule  string
	life      events.Ref // the event that created it
	of        events.RunOrigin
	active    bool // it has not ended
	cancelled bool // somebody wants it to end
	bytes     int64
}

// keptRun is an ended run that is kept.
type keptRun struct {
	life  events.Ref
	id    events.TaskID
	bytes int64
}

func newSchedules(shard extension.Shard) *Schedules {
	return &Schedules{byName: map[string]*Schedule{}, due: map[string]struct{}{}, shard: shard}
}

// Schedule returns a schedule, nil if there is none of that name, or it has ended.
func (s *Schedules) Schedule(name string) *Schedule {
	if of := s.byName[name]; of != nil && !of.Ended {
		return of
	}
	return nil
}

// Ended returns a schedule that has ended and is remembered, nil if there is none.
func (s *Schedules) Ended(name string) *Schedule {
	if of := s.byName[name]; of != nil && of.Ended {
		return of
	}
	return nil
}

// Len returns the number of schedules.
func (s *Schedules) Len() int { return s.alive }

// After returns up to n of the schedules that match, by name, after one name.
func (s *Schedules) After(name string, n int, match func(*Schedule) bool) []*Schedule {
	var all []*Schedule
	for _, of := range s.byName {
		if !of.Ended && of.Name > name && match(of) {
			all = append(all, of)
		}
	}
	slices.SortFunc(all, func(a, b *Schedule) int { return cmp.Compare(a.Name, b.Name) })
	return all[:min(n, len(all))]
}

// Delay returns how long after its time a tick of the schedule is due: the same always, and another for another name.
func (s *Schedule) Delay() events.Millis {
	if s.Plan.Jitter == 0 {
		return 0
	}
	return events.Millis(xxhash.Sum64String(s.Name) % uint64(s.Plan.Jitter+1))
}

// due returns when the next tick is due.
func (s *Schedule) due() events.Millis { return s.Next + s.Delay() }

// skips reports whether the next tick was due while a run had not ended, and is skipped for that.
func (s *Schedule) skips() bool { return s.Plan.Overlap == events.OverlapForbid && s.overlapped() }

// overlapped reports whether the next tick was due while a run had not ended, other than one of those that ticks have
// one after the other.
func (s *Schedule) overlapped() bool {
	return s.Next > s.CatchUp && s.BusyFrom <= s.due() && s.due() <= s.BusyUntil
}

// inPause reports whether the next tick was due in the last pause.
func (s *Schedule) inPause() bool {
	return s.Next > s.CatchUp && s.PausedFrom <= s.due() && s.due() <= s.PausedUntil
}

// dueAt returns when the schedule has something to decide; 0 = not before it changes.
func (s *Schedule) dueAt() events.Millis {
	switch {
	case s.Ended:
		return 0
	case s.fills():
		return 1
	case s.Paused != nil || s.Next == 0 || s.waits():
		return 0
	}
	return max(s.due(), 1)
}

// fills reports whether a tick of a backfill can be decided: each waits for the run of the one before it, and, unless
// runs may overlap, for every other run.
func (s *Schedule) fills() bool {
	waits := s.active
	if s.Plan.Overlap == events.OverlapAllow {
		waits = s.filling
	}
	return s.Fill != nil && waits == 0
}

// waits reports whether nothing can be decided before a run ends.
func (s *Schedule) waits() bool {
	switch {
	case s.active == 0:
		return false
	case s.Next <= s.CatchUp:
		return true
	case s.Plan.Overlap == events.OverlapAllow:
		return false
	case s.Plan.Overlap == events.OverlapReplace:
		return s.cancelled == s.active
	}
	return true
}

// reindex gives a schedule that has changed its place in the queue.
func (s *Schedules) reindex(of *Schedule) {
	delete(s.due, of.Name)
	s.queue.set(of, of.dueAt())
}

// NextDue returns when MakeDue has something to do; 0 = never.
func (s *Schedules) NextDue() events.Millis { return s.queue.first() }

// MakeDue notes the schedules whose time has come. It is no part of the fold, which has no clock.
func (s *Schedules) MakeDue(now events.Millis) (moved bool) {
	for of := s.queue.upTo(now); of != nil; of = s.queue.upTo(now) {
		s.queue.set(of, 0)
		s.due[of.Name] = struct{}{}
		moved = true
	}
	return moved
}

// Due returns the schedules whose time has come, the one that is due first at the head.
func (s *Schedules) Due() []*Schedule {
	all := make([]*Schedule, 0, len(s.due))
	for name := range s.due {
		all = append(all, s.byName[name])
	}
	slices.SortFunc(all, func(a, b *Schedule) int {
		return cmp.Or(cmp.Compare(a.dueAt(), b.dueAt()), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Undecided returns the number of schedules whose time has come.
func (s *Schedules) Undecided() int { return len(s.due) }

// Waiting reports whether the time of a schedule has come and nothing is decided yet.
func (s *Schedules) Waiting(name string) bool {
	_, is := s.due[name]
	return is
}

// All yields every schedule, in no order.
func (s *Schedules) All(yield func(*Schedule) bool) {
	for _, of := range s.byName {
		if !of.Ended && !yield(of) {
			return
		}
	}
}

// bytes is about what a schedule takes in a snapshot.
func (s *Schedule) bytes() int64 {
	n := scheduleBytes + len(s.Name) + len(s.Plan.Cron) + len(s.Plan.Zone) + len(s.Plan.Behavior) + len(s.Params) + len(s.SetBy)
	for _, code := range s.Codes {
		n += len(code)
	}
	if s.Paused != nil {
		n += len(s.Paused.By) + len(s.Paused.Reason) + len(s.Paused.Failed)
	}
	return int64(n)
}

// scheduleBytes counts what a schedule takes besides its texts.
const scheduleBytes = 200

// Bytes is about how much room the schedules take in a snapshot.
func (s *Schedules) Bytes() int64 { return s.bytes + int64(s.runs.Len())*runBytes }

// runBytes counts about what a run takes in a snapshot besides its task.
const runBytes = 100
