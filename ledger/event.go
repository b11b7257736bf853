package ledger

import (
	"taskledger/events"
	"taskledger/ledger/internal/earlier"
)

// Event is an event with what earlier ones of its task say.
type Event struct {
	events.Event
	// Behavior names the behavior of the task. It is "" for an event without a task, or when the beginning of the
	// task's life cannot be read any more. Follow, and Replay of more than one task, also leave it out when three
	// things meet: they do not remember the task, since they began in the middle of its life, or it had ended, or
	// 32,768 others were met since; the life began more than 1,024 entries with events of the task before; and its
	// owner does not know that life any more, or is silent.
	Behavior string
	// Node is the session id of the node whose attempt the event begins, reports of or ends. "" = it is about no
	// attempt, or the attempt began where the beginning of a life would not be found. The name of the node is
	// store.NodeName of it.
	Node string
}

// tell returns the next event of a task with what is known of it, and takes in what the event says itself.
func tell(k *earlier.Known, ev *events.Event) Event {
	e := Event{Event: *ev}
	e.Behavior, e.Node = k.Tell(ev)
	return e
}
