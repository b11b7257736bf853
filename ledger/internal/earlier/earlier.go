// Package earlier remembers what later events of a task leave out and earlier ones say: its behavior, and the node of
// its attempt. It reads nothing itself.
package earlier

import (
	"unique"

	"taskledger/events"
)

// Known holds what the events of a task so far say.
type Known struct{ behavior, node unique.Handle[string] }

// Make returns what is known by its texts; "" = it is not known, or no attempt runs.
func Make(behavior, node string) Known { return Known{unique.Make(behavior), unique.Make(node)} }

// Texts is the opposite of Make.
func (k Known) Texts() (behavior, node string) { return k.behavior.Value(), k.node.Value() }

var (
	noText  = unique.Make("")
	nothing = Known{noText, noText}
)

// Tell returns the behavior of the next event, and the node of the attempt that it is about, and takes in what it says
// itself.
func (k *Known) Tell(ev *events.Event) (behavior, node string) {
	switch b := ev.Body.(type) {
	case *events.Created:
		*k = Make(b.Behavior, "")
	case *events.Started:
		k.node = unique.Make(b.Node)
	case *events.Lost:
		k.node = unique.Make(b.Node)
	case *events.Released:
		k.node = unique.Make(b.Node)
	}
	switch {
	case endsAttempt(ev.Kind()):
		node, k.node = k.node.Value(), noText
	case ev.Kind() == events.KindStarted, ev.Kind() == events.KindProgressed:
		node = k.node.Value()
	}
	return k.behavior.Value(), node
}

// Memory remembers the tasks that were met last: maxRecalled at least, and twice as many at most. The zero value is
// empty.
type Memory struct {
	late, early map[events.TaskID]Known // early was full before late was begun
}

// maxRecalled bounds a memory: 7 MB with ids of 26 characters.
const maxRecalled = 32 << 10

// Of returns what is known of a task, and whether it was met.
func (m *Memory) Of(id events.TaskID) (k Known, met bool) {
	for _, all := range [...]map[events.TaskID]Known{m.late, m.early} {
		if k, met = all[id]; met {
			return k, true
		}
	}
	return nothing, false
}

// Keep remembers what is known of a task.
func (m *Memory) Keep(id events.TaskID, k Known) {
	if m.late == nil || len(m.late) >= maxRecalled {
		m.late, m.early = map[events.TaskID]Known{}, m.late
	}
	m.late[id] = k
}

// Forget forgets a task.
func (m *Memory) Forget(id events.TaskID) {
	delete(m.late, id)
	delete(m.early, id)
}

// IsLast reports whether a task that had the event has no further one unless somebody asks.
func IsLast(ev *events.Event) bool {
	switch b := ev.Body.(type) {
	case *events.Succeeded:
		return b.Next == 0
	case *events.Failed:
		return b.Next == 0
	case *events.Deleted:
		return true
	}
	return false
}

// endsAttempt reports whether no attempt runs after an event of the kind.
func endsAttempt(k events.Kind) bool {
	switch k {
	case events.KindSucceeded, events.KindFailed, events.KindSnoozed, events.KindLost, events.KindReleased:
		return true
	}
	return false
}
