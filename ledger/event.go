package ledger

import (
	"unique"

	"taskledger/events"
)

// Event is an event with what earlier ones of its task say.
type Event struct {
	events.Event
	Behavior string // of the task; "" = the event is of no task, or the beginning of the task's life cannot be read any more
	// Node is the session id of the node whose attempt the event begins, reports of or ends; "" = it is about no attempt. The name of the
	// node is store.NodeName of it.
	Node string
}

// known is what the events of a task so far say that later ones leave out.
type known struct {
	behavior unique.Handle[string]
	node     unique.Handle[string] // that runs it
}

var (
	noText  = unique.Make("")
	nothing = known{noText, noText}
)

// tell returns the next event of the task with what is known, and takes in what it says itself.
func (k *known) tell(ev *events.Event) Event {
	switch b := ev.Body.(type) {
	case *events.Created:
		*k = known{unique.Make(b.Behavior), noText}
	case *events.Started:
		k.node = unique.Make(b.Node)
	case *events.Lost:
		k.node = unique.Make(b.Node)
	case *events.Released:
		k.node = unique.Make(b.Node)
	}
	e := Event{Event: *ev, Behavior: k.behavior.Value()}
	switch {
	case endsAttempt(ev.Kind()):
		e.Node, k.node = k.node.Value(), noText
	case ev.Kind() == events.KindStarted, ev.Kind() == events.KindProgressed:
		e.Node = k.node.Value()
	}
	return e
}

// memory is what is known of the tasks that were met last: maxRecalled at least, and twice as many at most.
type memory struct {
	late, early map[events.TaskID]known // early was full before late was begun
}

// maxRecalled bounds a memory: 7 MB with ids of 26 characters.
const maxRecalled = 32 << 10

func (m *memory) of(id events.TaskID) (k known, met bool) {
	for _, all := range [...]map[events.TaskID]known{m.late, m.early} {
		if k, met = all[id]; met {
			return k, true
		}
	}
	return nothing, false
}

func (m *memory) keep(id events.TaskID, k known) {
	if m.late == nil || len(m.late) >= maxRecalled {
		m.late, m.early = map[events.TaskID]known{}, m.late
	}
	m.late[id] = k
}

func (m *memory) forget(id events.TaskID) {
	delete(m.late, id)
	delete(m.early, id)
}

// endsAttempt reports whether no attempt runs after an event of the kind.
func endsAttempt(k events.Kind) bool {
	switch k {
	case events.KindSucceeded, events.KindFailed, events.KindSnoozed, events.KindLost, events.KindReleased:
		return true
	}
	return false
}

// isLast reports whether a task that had the event has no further one unless somebody asks.
func isLast(ev *events.Event) bool {
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
