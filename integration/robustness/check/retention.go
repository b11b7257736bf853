package check

import (
	"cmp"
	"slices"

	"taskledger/events"
)

// finished are the tasks of a shard that have ended and are kept, by behavior. At the end of each entry those are forgotten
// that are too old at its time, and of each behavior those that are too many, the ones first that would expire first.
type finished struct{ shelves map[string]*shelf }

type shelf struct {
	tasks   []*task
	soonest events.Millis // no task expires before
	least   int           // of the counts that the policies of the tasks allow
}

func keepUntil(t *task) events.Millis {
	s := t.last()
	return s.endedAt.Add(s.policy.Retain)
}

func (f *finished) add(t *task) {
	s := t.last()
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
	sh := f.shelves[s.behavior]
	if at := slices.Index(sh.tasks, t); at >= 0 {
		sh.tasks = slices.Delete(sh.tasks, at, at+1)
	}
}

func (f *finished) forget(e *entry) {
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
		sh.tasks = slices.Delete(sh.tasks, 0, gone)
		if len(sh.tasks) == 0 {
			delete(f.shelves, behavior)
			continue
		}
		sh.soonest = keepUntil(sh.tasks[0])
	}
}
