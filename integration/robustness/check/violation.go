package check

import "fmt"

// The invariants under which a harness reports what it saw itself.
const (
	Served   = served
	Ended    = ended
	Archived = archived
	Clean    = clean
)

// The invariants, by number and name. That every entry is in archive or journal once, 12, is 1 on the union of both.
const (
	entriesOnce  = "1 entries"      // of a shard are 1..n, each written once, chained, alike on every member
	legal        = "2 legal"        // sequences without gaps, every transition legal
	served       = "3 served"       // is the fold of the journal
	attempts     = "4 attempts"     // an attempt starts after the one before has ended or was given up
	outcomes     = "5 outcomes"     // at most one of an attempt, at most one end of a run
	fenced       = "6 fenced"       // no entry of a session or an owner that was over
	acknowledged = "7 acknowledged" // commands have their events, and events their command
	ended        = "8 ended"        // every acknowledged task that can run
	futures      = "9 futures"      // tell committed outcomes
	effects      = "10 effects"     // follow a commit, and outcomes follow an execution
	once         = "11 once"        // created once, each batch decided once, retries within the policy
	archived     = "12 archive"     // can be read when the faults have healed
	clean        = "13 clean"       // nothing remains after a stop
	idle         = "14 idle"        // no ready task waits beside a free slot, outside of faults
	paused       = "15 paused"      // does not start
	admission    = "16 admission"   // submits add nothing to a store that is almost full
	listed       = "17 lists"       // tell every task once that was there and stayed
	itemsTold    = "18 items"       // clients of task stores were told what the journal tells, and it has what they asked for
	linear       = "linear"         // what clients were told can be put in one order that the journal explains
)

// Violation is a broken invariant.
type Violation struct {
	Invariant string // number and name
	Task      string // "" = of no single task
	Shard     int
	Entry     uint64 // 0 = of no single entry
	Text      string
}

// String returns all of it in one line.
func (v Violation) String() string {
	where := fmt.Sprintf("shard %d", v.Shard)
	if v.Entry != 0 {
		where += fmt.Sprintf(", entry %d", v.Entry)
	}
	if v.Task != "" {
		where += ", task " + v.Task
	}
	return fmt.Sprintf("%s: %s: %s", v.Invariant, where, v.Text)
}

// rank is the number of the invariant.
func rank(v Violation) int {
	n := 0
	if _, err := fmt.Sscanf(v.Invariant, "%d ", &n); err != nil {
		return 99
	}
	return n
}
