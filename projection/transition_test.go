package projection_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/projection"
)

// matrix says once more, independently of the fold, which phase each kind leads to; "-" is illegal, "=" stays.
const matrix = `
                 absent   CREATED  RUNNING  waiting  SUCCESS  FAILURE
Created          CREATED  -        -        -        -        -
Started          -        RUNNING  -        RUNNING  RUNNING  RUNNING
Progressed       -        -        =        -        -        -
Succeeded        -        -        SUCCESS  -        -        -
Failed           -        FAILURE  FAILURE  FAILURE  -        =
Snoozed          -        -        waiting  -        -        -
Lost             -        -        waiting  -        -        -
Released         -        -        waiting  -        -        -
Rescheduled      -        =        -        =        =        =
Merged           -        =        =        =        =        =
Suspended        -        =        =        =        =        =
Resumed          -        =        =        =        =        =
CancelRequested  -        -        =        -        -        -
Deleted          -        absent   -        -        absent   absent
Joined           -        =        =        =        =        =
AcceptedLoss     -        -        -        -        -        -
Recovered        -        -        -        -        -        -
Paused           -        -        -        -        -        -
Unpaused         -        -        -        -        -        -
ItemAdded        -        -        -        -        -        -
ItemReplaced     -        -        -        -        -        -
ItemRemoved      -        -        -        -        -        -
StoreForgotten   -        -        -        -        -        -
ScheduleSet      -        -        -        -        -        -
Ticked           -        -        -        -        -        -
SchedulePaused   -        -        -        -        -        -
ScheduleResumed  -        -        -        -        -        -
BackfillSet      -        -        -        -        -        -
BackfillEnded    -        -        -        -        -        -
ScheduleEnded    -        -        -        -        -        -
ScheduleDefined  -        -        -        -        -        -
WorkPlanned      -        -        =        -        =        =
PartitionStarted -        -        =        -        -        -
PartitionEnded   -        -        =        =        -        =
BucketsMoved     -        -        =        =        =        =
PermitsGranted   -        -        =        =        -        =
WorkReset        -        -        -        =        =        =
TokenMoved       -        -        =        =        -        =
ChangeHeld       -        -        =        =        -        =
HoldMoved        -        -        =        =        =        =
Described        -        =        =        =        =        =
`

var phaseNames = map[string]projection.Phase{"absent": projection.Absent, "CREATED": projection.IsCreated, "RUNNING": projection.OnNode,
	"waiting": projection.Waiting, "SUCCESS": projection.IsSuccess, "FAILURE": projection.IsFailure}

// eachTransition calls f for every kind and phase with what the matrix says.
func eachTransition(t *testing.T, f func(kind events.Kind, from, to projection.Phase, legal bool)) {
	lines := strings.Split(strings.TrimSpace(matrix), "\n")
	columns, rows := strings.Fields(lines[0]), lines[1:]
	if got, want := len(rows), len(events.Kinds()); got != want {
		t.Fatalf("the matrix has %d kinds, there are %d", got, want)
	}
	for i, row := range rows {
		kind, cells := events.Kinds()[i], strings.Fields(row)
		if cells[0] != kind.String() {
			t.Fatalf("row %d is %s, want %s", i, cells[0], kind)
		}
		for c, cell := range cells[1:] {
			from := phaseNames[columns[c]]
			to, legal := phaseNames[cell], cell != "-"
			if cell == "=" {
				to = from
			}
			f(kind, from, to, legal)
		}
	}
}

const subject events.TaskID = "orders/purge"

// inPhase is a journal whose task is in the phase, an entry and a second after whatever led there.
func inPhase(t testing.TB, p projection.Phase) *journal { return inPhaseWith(t, p) }

// inPhaseWith is inPhase of a task whose first attempt has further events.
func inPhaseWith(t testing.TB, p projection.Phase, further ...events.Body) *journal {
	t.Helper()
	j := newJournal(t)
	run := func() {
		j.add(subject, j.created())
		j.add(subject, j.started(subject))
		for _, body := range further {
			j.add(subject, body)
		}
	}
	switch p {
	case projection.IsCreated:
		j.add(subject, j.created())
	case projection.OnNode:
		run()
	case projection.Waiting:
		run()
		j.add(subject, &events.Lost{Until: j.now})
	case projection.IsSuccess:
		run()
		j.add(subject, &events.Succeeded{Next: j.now.Add(time.Second), Run: 1})
	case projection.IsFailure:
		run()
		j.add(subject, &events.Failed{Error: events.Error{Code: "x"}, Next: j.now.Add(time.Second)})
	}
	j.seal(time.Second)
	if got := j.state.Task(subject).Phase(); got != p {
		t.Fatalf("phase %s, want %s", got, p)
	}
	return j
}

// bodyOf is a body of the kind that fits the task but for its phase.
func bodyOf(j *journal, kind events.Kind) events.Body {
	runs := uint32(0)
	if t := j.state.Task(subject); t != nil {
		runs = t.Runs
	}
	return map[events.Kind]events.Body{
		events.KindCreated:         j.created(),
		events.KindStarted:         j.started(subject),
		events.KindProgressed:      &events.Progressed{Done: 1, Total: 2},
		events.KindSucceeded:       &events.Succeeded{Result: events.JSON([]byte("1")), Run: runs + 1},
		events.KindFailed:          &events.Failed{Error: events.Error{Code: "x"}, Run: runs + 1},
		events.KindSnoozed:         &events.Snoozed{Until: j.now.Add(time.Minute)},
		events.KindLost:            &events.Lost{Until: j.now.Add(time.Minute)},
		events.KindReleased:        &events.Released{Until: j.now},
		events.KindRescheduled:     &events.Rescheduled{At: j.now.Add(time.Hour)},
		events.KindMerged:          &events.Merged{Params: events.JSON([]byte("2"))},
		events.KindSuspended:       &events.Suspended{},
		events.KindResumed:         &events.Resumed{},
		events.KindCancelRequested: &events.CancelRequested{},
		events.KindDeleted:         &events.Deleted{},
		events.KindJoined:          &events.Joined{},
		events.KindAcceptedLoss:    &events.AcceptedLoss{},
		events.KindRecovered:       &events.Recovered{},
		events.KindPaused:          &events.Paused{},
		events.KindUnpaused:        &events.Unpaused{},

		events.KindWorkPlanned:      workPlanned,
		events.KindPartitionStarted: &events.PartitionStarted{Partition: 1},
		events.KindPartitionEnded:   &events.PartitionEnded{Partition: 1},
		events.KindBucketsMoved:     &events.BucketsMoved{Worker: 1, Attempt: 9, Ended: 1},
		events.KindPermitsGranted:   &events.PermitsGranted{Counter: "deleted", Bucket: 1, Items: []uint64{7}},
		events.KindWorkReset:        &events.WorkReset{What: events.ResetAll},
		events.KindTokenMoved:       &events.TokenMoved{Attempt: 9, Token: "t"},
		events.KindChangeHeld:       changeHeld,
		events.KindHoldMoved:        &events.HoldMoved{Hold: 1, Done: 1, Ended: true},
		events.KindDescribed:        &events.Described{Tags: []string{"nightly"}, Deadline: j.now.Add(time.Hour)},
	}[kind]
}

// workPlanned plans a work of one bucket.
var workPlanned = &events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{{ID: "all", Buckets: 1, Workers: 1, Threads: 1,
	Thresholds: []events.WorkThreshold{{Counter: "deleted", Limit: 10}}}}}

// streamPlanned plans a stream.
var streamPlanned = &events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{{ID: "all", Buckets: 1, Workers: 1, Threads: 1,
	Form: events.FormPrecise}}}

// changeHeld begins the first hold of a stream.
var changeHeld = &events.ChangeHeld{Attempt: 9, Hold: 1, Partition: 1, Key: "k", At: "t", Data: []byte("1")}

// worksBefore returns what comes, in an attempt, before an event of a kind can be one of the task's work.
func worksBefore(kind events.Kind) []events.Body {
	opened := []events.Body{
		workPlanned,
		&events.PartitionStarted{Partition: 1},
		&events.BucketsMoved{Worker: 1, Attempt: 9, Started: 1},
	}
	switch kind {
	case events.KindPartitionStarted, events.KindWorkReset:
		return opened[:1]
	case events.KindBucketsMoved, events.KindPermitsGranted:
		return opened
	case events.KindPartitionEnded:
		return append(opened, &events.BucketsMoved{Worker: 1, Attempt: 9, Ended: 1})
	case events.KindTokenMoved, events.KindChangeHeld:
		opened[0] = streamPlanned
		return opened
	case events.KindHoldMoved:
		opened[0] = streamPlanned
		return append(opened, changeHeld)
	}
	return nil
}

func TestNext_IsTheMatrix(t *testing.T) {
	eachTransition(t, func(kind events.Kind, from, to projection.Phase, legal bool) {
		got, ok := projection.Next(from, kind)
		if ok != legal || ok && got != to {
			t.Errorf("%s in %s leads to %s, %t; want %s, %t", kind, from, got, ok, to, legal)
		}
	})
	if _, ok := projection.Next(projection.Absent, 200); ok {
		t.Error("an unknown kind is legal")
	}
	if _, ok := projection.Next(projection.Phase(len(projection.Phases())), events.KindStarted); ok {
		t.Error("an unknown phase is legal")
	}
}

func TestApply_LegalTransitionsLeadWhereTheMatrixSays(t *testing.T) {
	eachTransition(t, func(kind events.Kind, from, to projection.Phase, legal bool) {
		if !legal {
			return
		}
		j := inPhaseWith(t, from, worksBefore(kind)...)
		after := j.add(subject, bodyOf(j, kind))
		if got := after.Phase(); got != to {
			t.Errorf("%s in %s led to %s, want %s", kind, from, got, to)
		}
		checkValid(t, after)
		checkPlaces(t, j.state, j.now)
	})
}

func TestApply_IllegalTransitionsAreNamedAndLeaveNoTrace(t *testing.T) {
	eachTransition(t, func(kind events.Kind, from, _ projection.Phase, legal bool) {
		if legal || kind.Record() != events.OfTask {
			return
		}
		j := inPhase(t, from)
		wantRefused(t, j, j.next(subject, bodyOf(j, kind)), from, from)
	})
}

// wantRefused applies an event and checks that the refusal says what it must, and that nothing has changed.
func wantRefused(t *testing.T, j *journal, ev events.Event, from, to projection.Phase) {
	t.Helper()
	before, beforePlaces := viewAll(j.state), places(j.state)
	got, err := j.state.Apply(j.state.Task(ev.Task), &ev)
	var refused *projection.TransitionError
	switch {
	case !errors.As(err, &refused):
		t.Errorf("%s in %s returned %v, %v; want a TransitionError", ev.Kind(), from, got, err)
		return
	case refused.Task != ev.Task || refused.Seq != ev.Seq || refused.Kind != ev.Kind() || refused.From != from || refused.To != to:
		t.Errorf("refused with %+v, want task %s, event %d, %s from %s to %s", refused, ev.Task, ev.Seq, ev.Kind(), from, to)
	}
	for _, part := range []string{string(ev.Task), ev.Kind().String(), from.String(), to.String()} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	if !reflect.DeepEqual(before, viewAll(j.state)) || !reflect.DeepEqual(beforePlaces, places(j.state)) {
		t.Errorf("%s was refused in %s and left a trace", ev.Kind(), from)
	}
}

func TestApply_RefusesWhatContradictsTheTask(t *testing.T) {
	for _, row := range []struct {
		name   string
		from   projection.Phase
		change func(j *journal, ev *events.Event)
		body   events.Body
		to     projection.Phase
	}{
		{"a gap in the sequence", projection.OnNode, func(_ *journal, ev *events.Event) { ev.Seq++ }, &events.Progressed{}, projection.OnNode},
		{"a sequence twice", projection.OnNode, func(_ *journal, ev *events.Event) { ev.Seq-- }, &events.Progressed{}, projection.OnNode},
		{"a foreign predecessor", projection.OnNode, func(_ *journal, ev *events.Event) { ev.Prev-- }, &events.Progressed{}, projection.OnNode},
		{"a life that begins late", projection.Absent, func(j *journal, ev *events.Event) { ev.Body, ev.Seq = j.created(), 2 }, nil, projection.IsCreated},
		{"a life with a predecessor", projection.Absent, func(j *journal, ev *events.Event) { ev.Body, ev.Prev = j.created(), 1 }, nil, projection.IsCreated},
		{"no behavior", projection.Absent, nil, &events.Created{NotBefore: start}, projection.IsCreated},
		{"no schedule", projection.Absent, nil, &events.Created{Behavior: "work"}, projection.IsCreated},
		{"a second failure that is retried", projection.IsFailure, nil, &events.Failed{Next: start + 1}, projection.IsFailure},
		{"an attempt too many", projection.Waiting, nil, &events.Started{Node: "n-1", Attempt: 3}, projection.OnNode},
		{"an attempt again", projection.Waiting, nil, &events.Started{Node: "n-1", Attempt: 1}, projection.OnNode},
		{"an attempt nowhere", projection.Waiting, nil, &events.Started{Attempt: 2}, projection.OnNode},
		{"an end of a later run", projection.OnNode, nil, &events.Succeeded{Run: 2}, projection.IsSuccess},
		{"an end of no run", projection.OnNode, nil, &events.Succeeded{}, projection.IsSuccess},
		{"a repetition after the end of a later run", projection.OnNode, nil, &events.Failed{Next: start + 9_000, Run: 2}, projection.IsFailure},
		{"a failure that ends no run", projection.OnNode, nil, &events.Failed{}, projection.IsFailure},
		{"a created task never due", projection.IsCreated, nil, &events.Rescheduled{}, projection.IsCreated},
		{"a waiting task never due", projection.Waiting, nil, &events.Rescheduled{}, projection.Waiting},
		{"lost until before", projection.OnNode, nil, &events.Lost{Until: start}, projection.Waiting},
		{"released until before", projection.OnNode, nil, &events.Released{}, projection.Waiting},
		{"snoozed until before", projection.OnNode, nil, &events.Snoozed{Until: -1}, projection.Waiting},
	} {
		t.Run(row.name, func(t *testing.T) {
			j := inPhase(t, row.from)
			ev := j.next(subject, row.body)
			if row.change != nil {
				row.change(j, &ev)
			}
			wantRefused(t, j, ev, row.from, row.to)
		})
	}
}

func TestApply_EligibleFromItsTimeOnInclusively(t *testing.T) {
	for _, from := range []projection.Phase{projection.IsCreated, projection.Waiting, projection.IsSuccess, projection.IsFailure} {
		j := inPhase(t, from)
		j.add(subject, &events.Rescheduled{At: j.now.Add(time.Minute)})
		j.seal(time.Minute - time.Millisecond)
		j.state.MakeDue(j.now)
		if got := j.state.Ready("work"); got != nil {
			t.Errorf("%s: ready a millisecond early", from)
		}
		wantRefused(t, j, j.next(subject, j.started(subject)), from, projection.OnNode)
		j.seal(time.Millisecond)
		j.state.MakeDue(j.now)
		if got := j.state.Ready("work"); got == nil {
			t.Errorf("%s: not ready at its time", from)
		}
		j.add(subject, j.started(subject))
	}
}

func TestApply_NeverEligibleWithoutTimeWhileSuspendedOrCancelled(t *testing.T) {
	for _, row := range []struct {
		from   projection.Phase
		before []events.Body
	}{
		{projection.IsSuccess, []events.Body{&events.Rescheduled{}}},
		{projection.IsFailure, []events.Body{&events.Rescheduled{}}},
		{projection.IsCreated, []events.Body{&events.Suspended{}}},
		{projection.Waiting, []events.Body{&events.Suspended{}}},
		{projection.OnNode, []events.Body{&events.CancelRequested{}, &events.Lost{Until: start + 1000}}},
	} {
		j := inPhase(t, row.from)
		for _, body := range row.before {
			j.add(subject, body)
		}
		j.now += 1_000_000
		j.state.MakeDue(j.now)
		from := j.state.Task(subject).Phase()
		if got := j.state.Ready("work"); got != nil && !got.Cancelled {
			t.Errorf("%s after %T is ready", from, row.before[0])
		}
		wantRefused(t, j, j.next(subject, j.started(subject)), from, projection.OnNode)
	}
}

func TestApply_CancelledTaskHasNoNextRun(t *testing.T) {
	for _, body := range []events.Body{
		&events.Succeeded{Next: start + 60_000, Run: 1},
		&events.Failed{Error: events.Error{Code: "x"}, Next: start + 60_000},
	} {
		j := inPhase(t, projection.OnNode)
		j.add(subject, &events.CancelRequested{})
		to, _ := projection.Next(projection.OnNode, body.Kind())
		wantRefused(t, j, j.next(subject, body), projection.OnNode, to)
	}
}

func TestDiagram_HasArrowsForEachPairOfPhases(t *testing.T) {
	arrows := map[string]bool{}
	name := map[projection.Phase]string{projection.Absent: "[*]", projection.IsCreated: "CREATED", projection.OnNode: "RUNNING",
		projection.Waiting: "RUNNING_waiting", projection.IsSuccess: "SUCCESS", projection.IsFailure: "FAILURE"}
	eachTransition(t, func(_ events.Kind, from, to projection.Phase, legal bool) {
		if legal {
			arrows[name[from]+" --> "+name[to]+": "] = true
		}
	})
	lines := strings.Split(strings.TrimSpace(projection.Diagram()), "\n")[1:]
	drawn := map[string]bool{}
	for _, line := range lines {
		arrow, kinds, _ := strings.Cut(strings.TrimSpace(line), ": ")
		drawn[arrow] = true
		if !arrows[arrow+": "] || kinds == "" {
			t.Errorf("unexpected arrow %q", line)
		}
	}
	if len(drawn) != len(arrows) {
		t.Errorf("%d pairs of phases have arrows, want %d", len(drawn), len(arrows))
	}
}
