package history

import "strings"

// KillKind is the fault after which tasks are timed: its target is a name and the session id that ended, its From the moment.
const KillKind = "node-kill"

// Rerun is a call that a kill ended, and the next one of its task.
type Rerun struct {
	Task string
	Next int64 // when the task's next attempt began; 0 = never
}

// Reruns returns what ran where a node was killed.
func (r *Run) Reruns(kill *Fault) (all []Rerun) {
	_, session, _ := strings.Cut(kill.Target, " ")
	for i := range r.Executions {
		x := &r.Executions[i]
		if x.Node != session || x.End != 0 {
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

// Alone reports whether no other fault was in force between two times.
func (r *Run) Alone(f *Fault, from, until int64) bool {
	for i := range r.Faults {
		if other := &r.Faults[i]; *other != *f && other.From < until && other.Until > from {
			return false
		}
	}
	return true
}
