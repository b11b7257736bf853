package projection

import "taskledger/events"

// Kind holds what tasks of one behavior, policy and creator share.
type Kind struct {
	Behavior string
	Policy   events.Policy
	Creator  string // the principal that created them; "" = none is known
	group    *group
	tasks    int // of this kind
}

type kindKey struct {
	behavior string
	policy   events.Policy
	creator  string
}

// group holds what the tasks of one behavior share: where those of them queue up that are ready, and that have ended
// with SUCCESS.
type group struct {
	kinds    int // of the behavior
	ready    queue
	repeats  queue // those of the ready ones that are repetitions which nobody asked for: they wait while the store is almost full
	finished queue
	tally    Tally

	// Owned by retention.
	changed bool
	at      int           // its place in the order of groups; -1 = none
	expires events.Millis // of the finished task that gave it this place, when it may be forgotten
	outcome events.Ref    // of that task
}
