package projection_test

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/requests"
	"taskledger/projection/works"
	"taskledger/task"
)

func replay(t tb, entries []*events.Entry) *projection.Shard {
	t.Helper()
	s := projection.NewShard(shard)
	for _, e := range entries {
		if err := s.Replay(e); err != nil {
			t.Fatalf("replay entry %d: %v", e.Number, err)
		}
	}
	return s
}

// step adds a random legal event of a random task.
func step(t *rapid.T, j *journal) {
	id := events.TaskID(rapid.SampledFrom([]string{"a", "b/1", "b/2", "c", "d", "e", "f", "g"}).Draw(t, "task"))
	task := j.state.Task(id)
	kinds := events.Kinds()
	legal := kinds[:0:0]
	ofWork := map[events.Kind]events.Body{}
	for _, kind := range kinds {
		if slices.Contains(works.Kinds(), kind) {
			if ofWork[kind] = workBody(j, task, kind); ofWork[kind] == nil {
				continue
			}
		}
		if _, ok := projection.Next(task.Phase(), kind); ok && fits(task, kind, j.now) {
			legal = append(legal, kind)
		}
	}
	kind := rapid.SampledFrom(legal).Draw(t, "kind")
	body := ofWork[kind]
	if body == nil {
		body = draw(t, j, task, kind)
	}
	ev := j.next(id, body)
	ev.RequestID = rapid.SampledFrom([]string{"", "r-1", "r-2"}).Draw(t, "request")
	j.addEvent(ev)
}

// fits reports whether a task whose phase allows a kind of event may have one.
func fits(task *projection.Task, kind events.Kind, now events.Millis) bool {
	switch {
	case kind == events.KindStarted:
		return eligible(task, now)
	case kind == events.KindFailed && task.Phase() == projection.IsFailure:
		return retried(task)
	}
	return true
}

// retried reports whether a task has failed and waits for its retry.
func retried(task *projection.Task) bool {
	return task.Phase() == projection.IsFailure && task.Due != 0 && !task.RunEnded
}

func eligible(task *projection.Task, now events.Millis) bool {
	return task.Due != 0 && task.Due <= now && !task.Suspended && !task.Cancelled
}

// draw makes a body of the kind that the task's fields allow.
func draw(t *rapid.T, j *journal, task *projection.Task, kind events.Kind) events.Body {
	later := j.now + events.Millis(rapid.IntRange(0, 5000).Draw(t, "later"))
	nextRun := rapid.SampledFrom([]events.Millis{0, later}).Draw(t, "next")
	payload := events.JSON([]byte(strings.Repeat("7", rapid.SampledFrom([]int{0, 1, projection.MaxKeptResult - 1, projection.MaxKeptResult}).Draw(t, "payload"))))
	if task != nil && (task.Cancelled || kind == events.KindFailed && retried(task)) {
		nextRun = 0
	}
	run := func(next events.Millis) uint32 {
		if next != 0 {
			return 0
		}
		return task.Runs + 1
	}
	switch kind {
	case events.KindCreated:
		p := policy(t, events.Policy{Retain: time.Duration(rapid.IntRange(1, 10_000).Draw(t, "retain")) * time.Millisecond,
			RetainCount: rapid.IntRange(1, 4).Draw(t, "count")})
		return &events.Created{Behavior: rapid.SampledFrom([]string{"work", "purge"}).Draw(t, "behavior"), Policy: p,
			Priority: rapid.Int64Range(0, 2).Draw(t, "priority"), NotBefore: later, Params: payload}
	case events.KindStarted:
		return &events.Started{Node: rapid.SampledFrom([]string{"n-1", "n-2"}).Draw(t, "node"), Attempt: task.Attempt + 1, Lease: 9_000}
	case events.KindSucceeded:
		return &events.Succeeded{Result: payload, Next: nextRun, Run: task.Runs + 1}
	case events.KindFailed:
		failure := events.Error{Code: "x", Message: "y" + string(payload), Retryable: nextRun != 0, Properties: map[string]string{"bucket": "b-1", "user": "ada"}}
		return &events.Failed{Error: failure, Next: nextRun, Run: run(nextRun)}
	case events.KindSnoozed:
		return &events.Snoozed{Until: later}
	case events.KindLost:
		return &events.Lost{Until: later}
	case events.KindReleased:
		return &events.Released{Until: later}
	case events.KindRescheduled:
		if p := task.Phase(); p == projection.IsCreated || p == projection.Waiting {
			nextRun = later
		}
		return &events.Rescheduled{At: nextRun, Terms: terms(t)}
	case events.KindMerged:
		return &events.Merged{Params: payload, Terms: terms(t)}
	case events.KindJoined:
		return &events.Joined{Terms: terms(t)}
	case events.KindProgressed:
		return &events.Progressed{Done: 1, Total: 2, Note: "half"}
	case events.KindSuspended:
		return &events.Suspended{}
	case events.KindResumed:
		return &events.Resumed{}
	case events.KindCancelRequested:
		return &events.CancelRequested{}
	case events.KindDescribed:
		return &events.Described{
			Tags:     rapid.SampledFrom([][]string{nil, {"nightly"}, {"customer=ada", "nightly"}}).Draw(t, "tags"),
			Deadline: rapid.SampledFrom([]events.Millis{0, later}).Draw(t, "deadline"),
		}
	}
	return &events.Deleted{}
}

// terms are none, or some that other tasks have, too.
func terms(t *rapid.T) *events.Terms {
	if rapid.Bool().Draw(t, "no terms") {
		return nil
	}
	return &events.Terms{Policy: policy(t, events.Policy{Retain: time.Second, RetainCount: rapid.IntRange(1, 4).Draw(t, "count")}),
		Priority: rapid.Int64Range(0, 2).Draw(t, "priority")}
}

// expired are the tasks that the seal of an entry at the given time must forget.
func expired(s *projection.Shard, at events.Millis) map[events.TaskID]bool {
	until := func(t *projection.Task) events.Millis { return overSince(t).Add(t.Kind.Policy.Retain) }
	finished := map[string][]*projection.Task{}
	for t := range s.Tasks() {
		held := streams(s, t) || len(t.Requests) > 0 && s.Since(heldSince(t), at) <= events.Millis(projection.HoldRequests.Milliseconds())
		if t.Final() && !held && t.Status == task.Success { // failures are kept for longer than any sequence takes
			finished[t.Kind.Behavior] = append(finished[t.Kind.Behavior], t)
		}
	}
	gone := map[events.TaskID]bool{}
	for _, tasks := range finished {
		slices.SortFunc(tasks, func(a, b *projection.Task) int {
			return cmp.Or(cmp.Compare(until(a), until(b)), cmp.Compare(a.Outcome, b.Outcome))
		})
		for len(tasks) > 0 && (until(tasks[0]) < at || len(tasks) > tasks[0].Kind.Policy.RetainCount) {
			gone[tasks[0].ID] = true
			tasks = tasks[1:]
		}
	}
	return gone
}

// sealForgetting seals an entry, which must forget what is expired and nothing else.
func sealForgetting(j *journal, pause time.Duration) {
	j.t.Helper()
	before, gone := viewAll(j.state), expired(j.state, j.now)
	j.seal(pause)
	for id := range before {
		if (j.state.Task(id) == nil) != gone[id] {
			j.t.Fatalf("%s: forgotten %t, want %t", id, j.state.Task(id) == nil, gone[id])
		}
	}
}

func TestShard_EveryLegalSequenceKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		for range rapid.IntRange(1, 25).Draw(t, "entries") {
			for range rapid.IntRange(1, 8).Draw(t, "events") {
				step(t, j)
				for task := range j.state.Tasks() {
					checkValid(t, task)
				}
				checkPlaces(t, j.state, j.now)
			}
			sealForgetting(j, time.Duration(rapid.IntRange(0, 4000).Draw(t, "pause"))*time.Millisecond)
			checkPlaces(t, j.state, j.now)
		}
		again := replay(t, j.entries)
		again.MakeDue(j.now)
		if !reflect.DeepEqual(viewAll(again), viewAll(j.state)) || !reflect.DeepEqual(places(again), places(j.state)) {
			t.Fatalf("replay leads to\n%v, Apply and Seal to\n%v", viewAll(again), viewAll(j.state))
		}
		if again.Number != j.state.Number || again.Hash != j.state.Hash || again.Time != j.state.Time {
			t.Fatalf("replay ends at entry %d of %d, want %d of %d", again.Number, again.Time, j.state.Number, j.state.Time)
		}
	})
}

// Of many tasks most come to a queue in its order. Here some do not, others leave from the middle, and places are
// renumbered.
func TestQueues_KeepTheirOrderWhoeverComesAndLeaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		j.state.WrapSoon("work", rapid.Uint32Range(0, 20).Draw(t, "wrap"))
		seldom := func(label string) bool { return rapid.IntRange(0, 7).Draw(t, label) == 0 }
		var ids []events.TaskID
		for i := range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"create", "create", "create", "finish", "finish", "delete", "seal"}).Draw(t, "do") {
			case "create":
				c := j.created()
				c.Policy.Retain, c.Policy.RetainCount = 2*time.Second, 15
				if seldom("short") {
					c.Policy.Retain = time.Second
				}
				if seldom("urgent") {
					c.Priority = 5
				}
				switch rapid.IntRange(0, 2).Draw(t, "delay") {
				case 1:
					c.NotBefore = j.now.Add(time.Second)
				case 2:
					c.NotBefore += events.Millis(rapid.IntRange(1, 2000).Draw(t, "later"))
				}
				ids = append(ids, events.TaskID(fmt.Sprint("t", i)))
				j.add(ids[len(ids)-1], c)
			case "finish":
				if task := j.state.Ready("work"); task != nil {
					j.add(task.ID, j.started(task.ID))
					j.add(task.ID, &events.Succeeded{Run: 1})
				}
			case "delete":
				if len(ids) > 0 {
					j.add(rapid.SampledFrom(ids).Draw(t, "task"), &events.Deleted{})
				}
			case "seal":
				if len(j.entry.Entry.Events) > 0 {
					sealForgetting(j, time.Duration(rapid.IntRange(0, 300).Draw(t, "pause"))*time.Millisecond)
				}
			}
			ids = slices.DeleteFunc(ids, func(id events.TaskID) bool { return j.state.Task(id) == nil })
			checkPlaces(t, j.state, j.now)
		}
	})
}

func TestReplay_RefusesWhatDoesNotContinueTheChain(t *testing.T) {
	j := newJournal(t)
	for i := range 3 {
		j.add(events.TaskID(fmt.Sprint("t", i)), j.created())
		j.seal(time.Second)
	}
	for _, row := range []struct {
		name   string
		after  int // entries applied before
		change func(e *events.Entry)
	}{
		{"another shard", 0, func(e *events.Entry) { e.Shard++ }},
		{"not the first", 0, func(e *events.Entry) { e.Number++ }},
		{"a gap", 1, func(e *events.Entry) { e.Number++ }},
		{"an entry twice", 2, func(e *events.Entry) { e.Number-- }},
		{"another predecessor", 1, func(e *events.Entry) { e.Prev[0] ^= 1 }},
		{"a predecessor of the first", 0, func(e *events.Entry) { e.Prev[31] = 1 }},
		{"time running back", 2, func(e *events.Entry) { e.Time = start }},
	} {
		s := replay(t, j.entries[:row.after])
		e := *j.entries[row.after]
		row.change(&e)
		before := viewAll(s)
		if err := s.Replay(&e); !errors.Is(err, projection.ErrChain) {
			t.Errorf("%s: %v, want ErrChain", row.name, err)
		}
		if !reflect.DeepEqual(before, viewAll(s)) || s.Number != uint64(row.after) {
			t.Errorf("%s: refused and left a trace", row.name)
		}
	}
}

func TestReplay_NamesTheEntryOfAnIllegalEvent(t *testing.T) {
	j := newJournal(t)
	j.add("a", j.created())
	j.seal(0)
	e := *j.entries[0]
	e.Events = append(e.Events, e.Events[0])
	err := projection.NewShard(shard).Replay(&e)
	var refused *projection.TransitionError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "entry 1 of shard 3") {
		t.Errorf("%v, want a TransitionError that names entry 1 of shard 3", err)
	}
}

func TestMerged_WhileAnAttemptRunsPromisesARunThatSurvivesLossAndRetry(t *testing.T) {
	for _, between := range [][]events.Body{
		{&events.Lost{Until: start}},
		{&events.Released{Until: start}},
		{&events.Failed{Error: events.Error{Code: "x"}, Next: start}},
		{&events.Lost{Until: start}, &events.Merged{}, &events.Rescheduled{At: start}},
	} {
		j := newJournal(t)
		j.add("a", j.created())
		j.add("a", j.started("a"))
		j.add("a", &events.Merged{})
		for _, body := range between {
			j.add("a", body)
		}
		j.add("a", j.started("a"))
		if !j.state.Task("a").Rerun {
			t.Errorf("after %T the further run is forgotten", between[0])
		}
		if after := j.add("a", &events.Succeeded{Run: 1}); after.Rerun || after.Runs != 1 {
			t.Errorf("after the run has ended: further run %t, runs %d; want none, 1", after.Rerun, after.Runs)
		}
	}
}

func TestMerged_WhileNoAttemptRunsPromisesNoFurtherRun(t *testing.T) {
	for _, from := range []projection.Phase{projection.IsCreated, projection.Waiting, projection.IsSuccess, projection.IsFailure} {
		j := inPhase(t, from)
		if after := j.add(subject, &events.Merged{Params: events.JSON([]byte("2"))}); after.Rerun || string(after.Params[1:]) != "2" {
			t.Errorf("%s: further run %t, parameters %q", from, after.Rerun, after.Params)
		}
	}
}

func TestRuns_CountEndsAndBudgetsStartAfresh(t *testing.T) {
	j := newJournal(t)
	j.add("a", j.created())
	check := func(when string, runs, failures, lost uint32) {
		t.Helper()
		if a := j.state.Task("a"); a.Runs != runs || a.Failures != failures || a.Lost != lost {
			t.Errorf("%s: runs %d, failures %d, lost %d; want %d, %d, %d", when, a.Runs, a.Failures, a.Lost, runs, failures, lost)
		}
	}
	j.add("a", j.started("a"))
	j.add("a", &events.Failed{Next: j.now})
	j.add("a", j.started("a"))
	j.add("a", &events.Lost{Until: j.now})
	check("after a failure and a loss", 0, 1, 1)
	j.add("a", j.started("a"))
	j.add("a", &events.Snoozed{Until: j.now})
	j.add("a", j.started("a"))
	j.add("a", &events.Released{Until: j.now})
	check("snoozed and released count as neither", 0, 1, 1)
	j.add("a", j.started("a"))
	j.add("a", &events.Succeeded{Next: j.now, Run: 1})
	check("at the end of the run", 1, 1, 1)
	j.add("a", j.started("a"))
	check("in the next run", 1, 0, 0)
	j.add("a", &events.Failed{Next: j.now})
	j.add("a", &events.Rescheduled{})
	check("a retry taken away ends the run", 2, 1, 0)
	if a := j.state.Task("a"); a.Attempt != 6 {
		t.Errorf("%d attempts in this life, want 6", a.Attempt)
	}
}

func TestReady_ByPriorityThenTimeThenSequence(t *testing.T) {
	j := newJournal(t)
	for _, row := range []struct {
		id       events.TaskID
		priority int64
		due      events.Millis
	}{{"late", 5, 20}, {"early", 5, 10}, {"low", 1, 0}, {"high", 9_223_371, 30}, {"second", 5, 20}} {
		c := j.created()
		c.Priority, c.NotBefore = row.priority, j.now+row.due
		j.add(row.id, c)
	}
	j.seal(time.Second)
	j.state.MakeDue(j.now)
	for _, want := range []events.TaskID{"high", "early", "late", "second", "low"} {
		got := j.state.Ready("work")
		if got == nil || got.ID != want {
			t.Fatalf("first ready task is %+v, want %s", got, want)
		}
		j.add(want, j.started(want))
	}
	if got := j.state.Ready("work"); got != nil {
		t.Errorf("%s is ready", got.ID)
	}
	if j.state.Ready("no-such-behavior") != nil {
		t.Error("a behavior without tasks has a ready one")
	}
}

func TestRipen_MovesExactlyWhatIsDue(t *testing.T) {
	j := newJournal(t)
	for i := range 10 {
		c := j.created()
		c.NotBefore = j.now + events.Millis(i+1)*1000
		j.add(events.TaskID(fmt.Sprint("t", i)), c)
	}
	if got, want := j.state.NextDue(), j.now+1000; got != want {
		t.Errorf("next due %d, want %d", got, want)
	}
	j.state.MakeDue(j.now + 4000)
	checkPlaces(t, j.state, j.now+4000)
	ready := 0
	for _, n := range j.state.Backlog() {
		ready += n
	}
	if ready != 4 {
		t.Errorf("%d ready tasks, want 4", ready)
	}
}

func TestRequests_TheLatestAreRemembered(t *testing.T) {
	j := newJournal(t)
	j.add("a", j.created())
	for i := range requests.Max + 3 {
		ev := j.next("a", &events.Suspended{})
		ev.RequestID = fmt.Sprint("r", i)
		j.addEvent(ev)
	}
	a := j.state.Task("a")
	if len(a.Requests) != requests.Max || a.Requests.Of("r2") != nil || a.Requests.Of("r3") == nil || a.Requests.Of("r18") == nil || a.Requests.Of("") != nil {
		t.Errorf("requests %v, want r3 to r18", a.Requests)
	}
}

func TestTask_TellsTheSameRequestFromAnotherOfItsKey(t *testing.T) {
	q := events.Request{Behavior: "work"}
	other := events.Request{Behavior: "work", Priority: 1}
	task := projection.Task{Requests: requests.List{{ID: q.ID("a")}, {ID: "plain"}}}
	for _, row := range []struct {
		id              string
		same, otherwise bool
	}{
		{q.ID("a"), true, false}, {other.ID("a"), false, true}, {q.ID("b"), false, false}, {"", false, false}, {"plain", true, false}, {"a", false, true},
	} {
		if (task.Requests.Of(row.id) != nil) != row.same || task.Requests.Another(row.id) != row.otherwise {
			t.Errorf("%q: requested %t, otherwise %t; want %t, %t", row.id, task.Requests.Of(row.id) != nil, task.Requests.Another(row.id), row.same, row.otherwise)
		}
	}
}
