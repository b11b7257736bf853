package projection

import (
	"fmt"
	"slices"
	"strings"

	"taskledger/events"
	"taskledger/task"
)

// Phase is a status, RUNNING told apart by whether an attempt runs: what decides which events are legal.
type Phase uint8

// The phases.
const (
	Absent     Phase = iota // no such task
	IsCreated               // CREATED
	OnNode                  // RUNNING, and an attempt runs
	Waiting                 // RUNNING, lost, released or snoozed, and waits to run again
	IsSuccess               // SUCCESS
	IsFailure               // FAILURE
	phaseCount int   = iota
)

// String returns the status, and for RUNNING what distinguishes its two phases.
func (p Phase) String() string {
	return [...]string{"absent", "CREATED", "RUNNING", "RUNNING (waiting)", "SUCCESS", "FAILURE"}[p]
}

// Phases returns every phase.
func Phases() []Phase { return []Phase{Absent, IsCreated, OnNode, Waiting, IsSuccess, IsFailure} }

// Phase returns the task's phase; nil is Absent.
func (t *Task) Phase() Phase {
	switch {
	case t == nil:
		return Absent
	case t.Status == task.Created:
		return IsCreated
	case t.Status == task.Running && t.OnNode():
		return OnNode
	case t.Status == task.Running:
		return Waiting
	case t.Status == task.Success:
		return IsSuccess
	}
	return IsFailure
}

// illegal marks the pairs of phase and kind that have no place in Next.
const illegal Phase = 0xff

// next is the state matrix: the phase that an event of a kind leads to from each phase. It is the one place that says
// which transitions are legal; the fold, the tests and the diagram in ARCHITECTURE.md are all driven by it.
var next = func() (m [64][phaseCount]Phase) {
	for kind := range m {
		for from := range m[kind] {
			m[kind][from] = illegal
		}
	}
	to := func(kind events.Kind, to Phase, from ...Phase) {
		for _, f := range from {
			m[kind][f] = to
		}
	}
	stays := func(kind events.Kind, from ...Phase) {
		for _, f := range from {
			m[kind][f] = f
		}
	}
	to(events.KindCreated, IsCreated, Absent)
	to(events.KindStarted, OnNode, IsCreated, Waiting, IsSuccess, IsFailure)
	stays(events.KindProgressed, OnNode)
	to(events.KindSucceeded, IsSuccess, OnNode)
	to(events.KindFailed, IsFailure, OnNode, IsCreated, Waiting, IsFailure)
	to(events.KindSnoozed, Waiting, OnNode)
	to(events.KindLost, Waiting, OnNode)
	to(events.KindReleased, Waiting, OnNode)
	stays(events.KindRescheduled, IsCreated, Waiting, IsSuccess, IsFailure)
	stays(events.KindMerged, IsCreated, OnNode, Waiting, IsSuccess, IsFailure)
	stays(events.KindSuspended, IsCreated, OnNode, Waiting, IsSuccess, IsFailure)
	stays(events.KindResumed, IsCreated, OnNode, Waiting, IsSuccess, IsFailure)
	stays(events.KindJoined, IsCreated, OnNode, Waiting, IsSuccess, IsFailure)
	stays(events.KindCancelRequested, OnNode)
	to(events.KindDeleted, Absent, IsCreated, IsSuccess, IsFailure)
	stays(events.KindWorkPlanned, OnNode, IsSuccess, IsFailure)
	stays(events.KindPartitionStarted, OnNode)
	stays(events.KindPartitionEnded, OnNode, Waiting, IsFailure)
	stays(events.KindBucketsMoved, OnNode, Waiting, IsSuccess, IsFailure)
	stays(events.KindPermitsGranted, OnNode, Waiting, IsFailure)
	stays(events.KindWorkReset, Waiting, IsSuccess, IsFailure)
	stays(events.KindTokenMoved, OnNode, Waiting, IsFailure)
	stays(events.KindChangeHeld, OnNode, Waiting, IsFailure)
	stays(events.KindHoldMoved, OnNode, Waiting, IsSuccess, IsFailure)
	stays(events.KindDescribed, IsCreated, OnNode, Waiting, IsSuccess, IsFailure)
	return m
}()

// Next returns the phase that an event of a kind leads to, and whether the state matrix has it.
func Next(from Phase, kind events.Kind) (Phase, bool) {
	if int(kind) >= len(next) || int(from) >= phaseCount || next[kind][from] == illegal {
		return 0, false
	}
	return next[kind][from], true
}

// TransitionError reports an event that the state of its task, or of another record, does not allow. The journal is
// damaged, or its writer had a bug; the fold stops.
type TransitionError struct {
	Record  events.Record
	Seq     uint64
	Kind    events.Kind
	Problem string

	// Of a task.
	Task events.TaskID
	From Phase
	To   Phase // what the kind would lead to; equal to From when the matrix has no such transition
}

// Error names the record, the sequence and, of a task, both states.
func (e *TransitionError) Error() string {
	if e.Record != events.OfTask {
		return fmt.Sprintf("%s, event %d: %s: %s", e.Record, e.Seq, e.Kind, e.Problem)
	}
	return fmt.Sprintf("task %s, event %d: %s leads from %s to %s: %s", e.Task, e.Seq, e.Kind, e.From, e.To, e.Problem)
}

// diagramKinds bounds the kinds that one arrow of the diagram names.
const diagramKinds = 5

// Diagram returns the state matrix as a Mermaid state diagram, with arrows for each pair of phases.
func Diagram() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	name := func(p Phase) string {
		if p == Absent {
			return "[*]"
		}
		return strings.NewReplacer(" (", "_", ")", "").Replace(p.String())
	}
	for _, from := range Phases() {
		for _, to := range Phases() {
			var kinds []string
			for _, kind := range events.Kinds() {
				if next[kind][from] == to {
					kinds = append(kinds, kind.String())
				}
			}
			for some := range slices.Chunk(kinds, diagramKinds) {
				fmt.Fprintf(&b, "    %s --> %s: %s\n", name(from), name(to), strings.Join(some, ", "))
			}
		}
	}
	return b.String()
}
