package history

import "strings"

// KillKind is the fault after which tasks are timed: its target is a name and the session id that ended, its From the
// moment.
const KillKind = "node-kill"

// BusAwayKind takes the bus away for minutes, to which all get used: while it lasts, every promise holds that does not
// depend on the bus.
const BusAwayKind = "bus-away-for-minutes"

// BusAwayFromOneKind takes the bus away from one node alone for minutes, to which all get used just so.
const BusAwayFromOneKind = "bus-away-from-one-for-minutes"

// UsedTo reports whether all get used to a kind of fault: it disturbs only when it begins and when it ends.
func UsedTo(kind string) bool { return kind == BusAwayKind || kind == BusAwayFromOneKind }

// QuietKind has nobody ask for anything for minutes. It disturbs nothing: every promise holds meanwhile.
const QuietKind = "quiet-for-minutes"

// AlmostFullKind lets the store look almost full to everybody.
const AlmostFullKind = "store almost full"

// FullKinds are the faults that fill the store, or let it look almost full: joins then record nothing.
var FullKinds = []string{"no space", "etcd-full", AlmostFullKind}

// Rerun is a call that a kill ended, and the next one of its task.
type Rerun struct {
	Task string
	Next int64 // when the task's next attempt began; 0 = never
}

// Reruns returns what ran where a node was killed and is run again at once.
func (r *Run) Reruns(kill *Fault) (all []Rerun) {
	_, session, _ := strings.Cut(kill.Target, " ")
	for i := range r.Executions {
		x := &r.Executions[i]
		if x.Node != session || x.End != 0 || x.Repeats {
			continue
		}
		again := Rerun{Task: x.Task}
		for j := range r.Executions {
			y := &r.Executions[j]
			if y.Task == x.Task && y.Attempt == x.Attempt+1 && y.Begin > kill.From && (again.Next == 0 || y.Begin < again.Next) {
				again.Next = y.Begin
			}
		}
		all = append(all, again)
	}
	return all
}

// Alone reports whether no other fault disturbed between two times.
func (r *Run) Alone(f *Fault, from, until int64) bool {
	for i := range r.Faults {
		other := &r.Faults[i]
		switch {
		case *other == *f || other.From >= until || other.Until <= from:
		case UsedTo(other.Kind) && other.From < from && other.Until > until:
		default:
			return false
		}
	}
	return true
}
