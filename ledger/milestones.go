package ledger

import (
	"slices"
	"sync"

	"taskledger/events"
	"taskledger/projection"
)

const (
	// stride is the number of events from one milestone of a life to the next.
	stride = 1000
	// maxMarked bounds the lives that have milestones, and maxMarkBytes what these take.
	maxMarked    = 32
	maxMarkBytes = 16 << 20
	// maxRecent bounds the milestones of a life that lie between those of its strides: where states were asked for.
	maxRecent = 8
)

// Milestones keep lives of tasks as they were after some of their events, so that a state after a late one is folded
// from the milestone before it: the first look at a life reads it from the beginning, a later one reads stride events
// at most. The lives that were looked at longest ago go first. The zero value has none. It may be used concurrently.
type Milestones struct {
	mu    sync.Mutex
	lives []*marked // in the order in which they were last looked at
	bytes int64     // of all marks
}

// lifeOf names a life of a task.
type lifeOf struct {
	task    events.TaskID
	created events.Ref
}

// marked holds the milestones of a life.
type marked struct {
	of     lifeOf
	folds  chan struct{} // taken by whoever folds: who asks for a state nearby meanwhile goes on from there
	mile   []milestone   // one of each stride, in order
	recent []milestone
	bytes  int64
}

// milestone is a life after an event.
type milestone struct {
	ref  events.Ref
	seq  uint64
	mark *projection.Mark
}

// of returns the milestones of a life, which it makes the latest.
func (m *Milestones) of(life lifeOf) *marked {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.IndexFunc(m.lives, func(l *marked) bool { return l.of == life })
	if at < 0 {
		m.lives = append(m.lives, &marked{of: life, folds: make(chan struct{}, 1)})
		at = len(m.lives) - 1
	}
	is := m.lives[at]
	m.lives = append(slices.Delete(m.lives, at, at+1), is)
	m.shrinkLocked()
	return is
}

// shrinkLocked lets lives go that were looked at longest ago, until the rest keeps to the bounds.
func (m *Milestones) shrinkLocked() {
	for len(m.lives) > maxMarked || m.bytes > maxMarkBytes && len(m.lives) > 0 {
		m.bytes -= m.lives[0].bytes
		m.lives[0].bytes = 0
		m.lives = slices.Delete(m.lives, 0, 1)
	}
}

// latest returns the last milestone of a life that fits; false = none does.
func (m *Milestones) latest(of *marked, fits func(*milestone) bool) (last milestone, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, all := range [][]milestone{of.mile, of.recent} {
		for i := range all {
			if one := &all[i]; fits(one) && one.seq > last.seq {
				last, found = *one, true
			}
		}
	}
	return last, found
}

// keep adds a milestone of a life after an event, of its strides or where a state was asked for.
func (m *Milestones) keep(of *marked, life *projection.Life, ref events.Ref, seq uint64, recent bool) {
	mark, can := life.Mark()
	if !can {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.lives, of) { // others have taken its place
		return
	}
	into := &of.mile
	if recent {
		into = &of.recent
	}
	if slices.ContainsFunc(*into, func(one milestone) bool { return one.seq == seq }) {
		return
	}
	change := mark.Bytes()
	if recent && len(of.recent) == maxRecent {
		change -= of.recent[0].mark.Bytes()
		of.recent = slices.Delete(of.recent, 0, 1)
	}
	*into = append(*into, milestone{ref, seq, mark})
	of.bytes += change
	m.bytes += change
	m.shrinkLocked()
}
