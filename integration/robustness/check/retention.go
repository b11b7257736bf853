package check

import (
	"cmp"
	"slices"
	"time"

	"taskledger/events"
)

// finished are the tasks of a shard that have ended and are kept, those that have succeeded by behavior. At the end
// of each entry those are forgotten that are too old at its time, and of each behavior those that are too many, the
// ones first that would expire first. A task that has failed is kept for 14 days, whatever its policy says. Before
// that a task is held that a request with a key has made or changed: it does not count, and is not forgotten.
type finished struct {
	shelves map[string]*shelf
	failed  []*task
	held    []*task
	clock   foldClock // of the shard
}

// heldFor is the time that a task is held after it is over, or after the latest request that has joined it since.
const heldFor = events.Millis(10 * time.Minute / time.Millisecond)

func (f *finished) holds(t *task) bool {
	s := t.last()
	n := len(s.requests)
	return n > 0 && f.clock.Since(max(s.overSince(), s.requests[n-1].at)) <= heldFor
}

// overSince returns when the task ended, or when the further run that was promised after that was cancelled.
func (s *state) overSince() events.Millis { return max(s.endedAt, s.waits) }

type shelf struct {
	tasks   []*task
	soonest events.Millis // no task expires before
	least   int           // of the counts that the policies of the tasks allow
}

// failuresFor is the time that a failed task is kept.
const failuresFor = 14 * 24 * time.Hour

func keepUntil(t *task) events.Millis {
	s := t.last()
	if s.phase == failure {
		return s.overSince().Add(failuresFor)
	}
	return s.overSince().Add(s.policy.Retain)
}

func (f *finished) add(t *task) {
	if len(t.last().requests) > 0 {
		f.held = append(f.held, t)
	} else {
		f.shelve(t)
	}
}

func (f *finished) shelve(t *task) {
	s := t.last()
	if s.phase == failure {
		f.failed = append(f.failed, t)
		return
	}
	sh := f.shelves[s.behavior]
	if sh == nil {
		sh = &shelf{soonest: keepUntil(t), least: s.policy.RetainCount}
		f.shelves[s.behavior] = sh
	}
	sh.tasks = append(sh.tasks, t)
	sh.soonest, sh.least = min(sh.soonest, keepUntil(t)), min(sh.least, s.policy.RetainCount)
}

func (f *finished) remove(t *task) {
	s := t.last()
	if !s.final() {
		return
	}
	is := func(other *task) bool { return other == t }
	f.held, f.failed = slices.DeleteFunc(f.held, is), slices.DeleteFunc(f.failed, is)
	if sh := f.shelves[s.behavior]; sh != nil {
		sh.tasks = slices.DeleteFunc(sh.tasks, is)
	}
}

func (f *finished) forget(e *entry) (forgotten []*task) {
	f.held = slices.DeleteFunc(f.held, func(t *task) bool {
		if f.holds(t) {
			return false
		}
		f.shelve(t)
		return true
	})
	f.failed = slices.DeleteFunc(f.failed, func(t *task) bool {
		if keepUntil(t) >= e.Time {
			return false
		}
		t.steps = append(t.steps, step{entry: e.Number})
		forgotten = append(forgotten, t)
		return true
	})
	for behavior, sh := range f.shelves {
		if len(sh.tasks) <= sh.least && sh.soonest >= e.Time {
			continue
		}
		slices.SortFunc(sh.tasks, func(a, b *task) int {
			return cmp.Or(cmp.Compare(keepUntil(a), keepUntil(b)), cmp.Compare(a.last().ending, b.last().ending))
		})
		gone := 0
		for _, t := range sh.tasks {
			if len(sh.tasks)-gone <= t.last().policy.RetainCount && keepUntil(t) >= e.Time {
				break
			}
			gone++
		}
		for _, t := range sh.tasks[:gone] {
			t.steps = append(t.steps, step{entry: e.Number})
		}
		forgotten = append(forgotten, sh.tasks[:gone]...)
		sh.tasks = slices.Delete(sh.tasks, 0, gone)
		if len(sh.tasks) == 0 {
			delete(f.shelves, behavior)
			continue
		}
		sh.soonest = keepUntil(sh.tasks[0])
	}
	return forgotten
}
