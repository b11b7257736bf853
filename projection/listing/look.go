package listing

import (
	"cmp"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/task"
)

// Found tells what a search in a shard has come to.
type Found struct {
	Tasks  []*projection.Task // that match, newest first; the shard's own
	Next   Place              // where it goes on; where it began when it has looked at nothing
	Done   bool               // there is nothing to go on with
	Looked int                // tasks that it has looked at, and stretches of tasks that it has passed over
	Head   uint64             // number of the last entry of the shard
}

// Look searches a shard from a place on for at most limit tasks that match. It looks at no more than most, and at
// nothing more once stop, asked after every stretch of tasks, says so.
func Look(s *projection.Shard, f task.Filter, from Place, limit, most int, stop func() bool) Found {
	m := matcherOf(f)
	if f.Work {
		return lookAmongWorks(s, m, from, limit)
	}
	found := Found{Next: from, Head: s.Number}
	for stretch := range s.Newest(m.sought(from)) {
		if found.Looked >= most || found.Looked > 0 && stop() {
			return found
		}
		if stretch.Tasks == nil {
			found.Looked++
		}
		for _, t := range slices.Backward(stretch.Tasks) {
			switch {
			case t == nil || !from.holds(t):
				continue
			case t.CreatedAt < m.createdFrom:
				found.Done = true
				return found
			case found.Looked >= most:
				return found
			}
			found.Looked++
			found.Next = Place{t.Created, t.CreatedAt}
			if !m.matches(t, func() task.Substatus { return s.Substatus(t) }) {
				continue
			}
			if found.Tasks = append(found.Tasks, t); len(found.Tasks) == limit {
				return found
			}
		}
		if stretch.At < m.createdFrom {
			break
		}
		found.Next = Place{stretch.First, stretch.At}
	}
	found.Done = true
	return found
}

// lookAmongWorks is Look among the tasks that have a work, which are few: it looks at all of them.
func lookAmongWorks(s *projection.Shard, m matcher, from Place, limit int) Found {
	found := Found{Next: from, Done: true, Head: s.Number}
	for _, t := range s.Leading() {
		if !from.holds(t) {
			continue
		}
		if t.CreatedAt < m.createdFrom {
			break
		}
		found.Looked++
		found.Next = Place{t.Created, t.CreatedAt}
		if !m.matches(t, func() task.Substatus { return s.Substatus(t) }) {
			continue
		}
		if found.Tasks = append(found.Tasks, t); len(found.Tasks) == limit {
			found.Done = false
			break
		}
	}
	return found
}

// matcher is a filter with its times as tasks have them.
type matcher struct {
	task.Filter
	createdFrom, createdTo events.Millis
	endedFrom, endedTo     events.Millis
}

func matcherOf(f task.Filter) matcher {
	if !f.EndedTo.IsZero() && (f.CreatedTo.IsZero() || f.EndedTo.Before(f.CreatedTo)) {
		f.CreatedTo = f.EndedTo // what has ended was created before
	}
	return matcher{
		f,
		events.MillisOf(f.CreatedFrom),
		events.MillisOf(f.CreatedTo),
		events.MillisOf(f.EndedFrom),
		events.MillisOf(f.EndedTo),
	}
}

// sought holds what can be told of whole stretches of tasks.
func (m *matcher) sought(from Place) projection.Sought {
	of := projection.Sought{
		Before:    from.Before,
		Until:     from.Until,
		Status:    m.Status,
		Substatus: m.Substatus,
		Behavior:  m.Behavior,
		Creator:   m.Creator,
	}
	if m.Node != "" {
		of.Substatus = cmp.Or(of.Substatus, task.SubRunning)
	}
	if last := m.createdTo - 1; m.createdTo != 0 && (of.Until == 0 || last < of.Until) {
		of.Until = last
	}
	return of
}

// Matches reports whether a filter selects a task as callers get it, which does not tell whether it has a work: one
// that was listed by that is taken for one that has.
func Matches(f task.Filter, t *task.Task) bool {
	m := matcherOf(f)
	return t.CreatedAt >= m.createdFrom && m.matches(&projection.Task{
		ID:          t.ID,
		Kind:        &projection.Kind{Behavior: t.Behavior, Creator: t.Creator},
		Status:      t.Status,
		LastAttempt: projection.LastAttempt{Node: t.Session},
		CreatedAt:   t.CreatedAt,
		EndedAt:     t.EndedAt,
		About:       &projection.Description{Tags: t.Tags},
	}, func() task.Substatus { return t.Substatus })
}

// matches reports whether a task that was not created too early matches.
func (m *matcher) matches(t *projection.Task, substatus func() task.Substatus) bool {
	switch {
	case m.Status != 0 && t.Status != m.Status,
		m.Substatus != 0 && substatus() != m.Substatus,
		m.Behavior != "" && t.Kind.Behavior != m.Behavior,
		m.Creator != "" && t.Kind.Creator != m.Creator,
		m.Node != "" && t.Node != m.Node,
		m.Affinity != "" && t.ID.Affinity() != m.Affinity,
		!strings.HasPrefix(t.ID.Affinity(), m.AffinityPrefix),
		m.Tag != "" && !slices.Contains(t.Tags(), m.Tag),
		m.createdTo != 0 && t.CreatedAt >= m.createdTo,
		m.endedFrom != 0 && t.EndedAt < m.endedFrom,
		m.endedTo != 0 && (t.EndedAt == 0 || t.EndedAt >= m.endedTo):
		return false
	}
	return true
}
