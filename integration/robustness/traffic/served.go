package traffic

import (
	"taskledger/integration/robustness/history"
	"taskledger/projection"
)

// Served is what an owner shows of a task.
func Served(t *projection.Task) (history.Served, error) {
	s := history.Served{Task: string(t.ID), Status: t.Status.String(), Seq: t.Seq, Attempt: t.Attempt, Runs: t.Runs,
		Whole: true, Suspended: t.Suspended, Due: t.Due, Failures: t.Failures, Lost: t.Lost,
		Creator: t.Kind.Creator, LastNode: t.LastNode.String()}
	if t.OnNode() { // Due is the lost stamp then, which moves on with the node; in the fold there is none
		s.Due = 0
	}
	if w := t.Wait; w != nil {
		s.WaitSince, s.SuspendedAt = w.Since, w.SuspendedAt
		if w.Cause != 0 {
			s.WaitCause = w.Cause.String()
		}
	}
	var err error
	s.Outcome, err = OutcomeOf(t)
	return s, err
}
