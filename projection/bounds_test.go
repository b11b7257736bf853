package projection_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/projection"
)

// finish takes a task from nothing to its end within the present entry.
func (j *journal) finish(id events.TaskID, retain time.Duration, result events.Payload) {
	c := j.created()
	c.Policy.Retain = retain
	j.add(id, c)
	j.add(id, j.started(id))
	j.add(id, &events.Succeeded{Result: result, Run: 1})
}

func TestRetention_ByAgeInclusively(t *testing.T) {
	j := newJournal(t)
	j.finish("a", time.Minute, nil)
	j.seal(time.Minute)
	j.add("other", j.created())
	j.seal(time.Millisecond)
	if j.state.Task("a") == nil {
		t.Error("forgotten at its time, want after it")
	}
	j.add("another", j.created())
	j.seal(0)
	if j.state.Task("a") != nil || j.state.Finished() != 0 || j.state.Live() != 2 {
		t.Error("kept beyond its time")
	}
}

// kept are those of the given tasks that the shard still has.
func (j *journal) kept(ids ...events.TaskID) (kept []events.TaskID) {
	for _, id := range ids {
		if j.state.Task(id) != nil {
			kept = append(kept, id)
		}
	}
	return kept
}

func TestRetention_ByCountOfABehaviorTheFirstToExpireGoes(t *testing.T) {
	j := newJournal(t)
	finish := func(id events.TaskID, behavior string, retain time.Duration, count int) {
		c := j.created()
		c.Behavior, c.Policy.Retain, c.Policy.RetainCount = behavior, retain, count
		j.add(id, c)
		j.add(id, j.started(id))
		j.add(id, &events.Succeeded{Run: 1})
	}
	want := func(when string, want ...events.TaskID) {
		t.Helper()
		j.seal(0)
		if got := j.kept("a", "b", "c", "d", "e", "o", "live"); !slices.Equal(got, want) {
			t.Errorf("%s: kept %v, want %v", when, got, want)
		}
	}
	finish("o", "other", time.Second, 2)
	finish("a", "work", 3*time.Hour, 2)
	finish("b", "work", 1*time.Hour, 2)
	j.add("live", j.created())
	want("two of two", "a", "b", "o", "live")
	finish("c", "work", 2*time.Hour, 2)
	want("three of two", "a", "c", "o", "live")
	finish("d", "work", 4*time.Hour, 3)
	want("the first says two", "a", "d", "o", "live")
	finish("e", "work", 5*time.Hour, 1)
	want("the first, then the next says how many", "d", "e", "o", "live")
	finish("a", "work", 6*time.Hour, 9)
	want("the first says three", "a", "d", "e", "o", "live")
	j.add("d", &events.Deleted{})
	want("the first was deleted, and the next says one", "a", "o", "live")
}

func TestRetention_ByCountOfTheShardTheFirstToExpireGoes(t *testing.T) {
	j := newJournal(t)
	finish := func(i int, behavior string, retain time.Duration) {
		c := &events.Created{Behavior: behavior, NotBefore: j.now, Policy: policy(t, events.Policy{Retain: retain, RetainCount: 1_000_000})}
		id := events.TaskID(fmt.Sprint("t", i))
		j.add(id, c)
		j.add(id, j.started(id))
		j.add(id, &events.Succeeded{Run: 1})
	}
	for i := range projection.MaxFinished {
		if i%1000 == 999 {
			j.seal(0)
		}
		finish(i, fmt.Sprint("b", i%7), 24*time.Hour+time.Duration(i/2)*time.Millisecond)
	}
	finish(projection.MaxFinished, "late", time.Hour)
	finish(projection.MaxFinished+1, "late", 48*time.Hour)
	j.seal(0)
	if got := j.kept("t0", "t1", "t2", "t100000", "t100001"); !slices.Equal(got, []events.TaskID{"t1", "t2", "t100001"}) || j.state.Finished() != projection.MaxFinished {
		t.Errorf("%d are kept, of the first and last %v", j.state.Finished(), got)
	}
}

func TestRetention_ByBytesOfTheShardTheFirstToExpireGoes(t *testing.T) {
	const size = projection.MaxKeptResult
	j := newJournal(t)
	finish := func(i int) events.TaskID {
		id := events.TaskID(fmt.Sprintf("t%05d", i))
		c := j.created()
		c.Policy.RetainCount = projection.MaxFinished
		j.add(id, c)
		j.add(id, j.started(id))
		j.add(id, &events.Succeeded{Run: 1, Result: events.JSON([]byte(strings.Repeat("7", size-200)))})
		return id
	}
	each := bytesOf(j.state.Task(finish(0)))
	most := projection.MaxFinishedBytes / int(each)
	for i := range most {
		finish(i + 1)
		if i%100 == 99 {
			j.seal(time.Millisecond)
		}
	}
	j.seal(0)
	if got := j.kept("t00000", "t00001", "t00002"); !slices.Equal(got, []events.TaskID{"t00001", "t00002"}) || j.state.Finished() != most {
		t.Errorf("kept %v, in all %d of %d", got, j.state.Finished(), most)
	}
	if j.state.LiveBytes() != 0 {
		t.Errorf("finished tasks count as %d live bytes", j.state.LiveBytes())
	}
}

// finishRequested ends a task that a request has made, with the policy given.
func (j *journal) finishRequested(id events.TaskID, request string, p events.Policy, result string) {
	c := j.created()
	c.Policy = policy(j.t, p)
	ev := j.next(id, c)
	ev.RequestID = request
	j.addEvent(ev)
	j.add(id, j.started(id))
	j.add(id, &events.Succeeded{Result: events.JSON([]byte(result)), Run: 1})
}

// What the policy would have forgotten long ago is held; a task like it without a request is not.
func TestRetention_HoldsWhatARequestMadeForTenMinutesWhateverElseEnds(t *testing.T) {
	const size = projection.MaxKeptResult / 2
	j := newJournal(t)
	brief := events.Policy{Retain: time.Second, RetainCount: 1}
	j.finishRequested("held", "key#0", brief, "1")
	j.finishRequested("large", "key#1", brief, strings.Repeat("7", size))
	j.finishRequested("other", "", brief, "1")
	pause := projection.HoldRequests / 10_000
	for i := range 10_000 {
		id := events.TaskID(fmt.Sprint("t", i))
		j.finishRequested(id, "", events.Policy{Retain: time.Hour, RetainCount: 2000}, strings.Repeat("7", size))
		j.seal(pause)
	}
	j.now = start.Add(projection.HoldRequests)
	j.begin()
	j.add("last", j.created())
	j.seal(time.Millisecond)
	if got := j.kept("held", "large", "other"); !slices.Equal(got, []events.TaskID{"held", "large"}) || j.state.Held() != 2 || j.state.Finished() != 2002 {
		t.Errorf("at its time %v are kept, %d are held and %d finished", got, j.state.Held(), j.state.Finished())
	}
	checkPlaces(t, replay(t, j.entries), j.now)
	j.add("past", j.created())
	j.seal(0)
	if got := j.kept("held", "large", "other"); got != nil || j.state.Held() != 0 || j.state.Finished() != 2000 {
		t.Errorf("past its time %v are kept, %d are held and %d finished", got, j.state.Held(), j.state.Finished())
	}
	checkPlaces(t, replay(t, j.entries), j.now)
}

// Ten minutes, by the last outcome: a further run begins them anew, and then the policy says how long.
func TestRetention_HoldsFromTheLastOutcomeAndThenKeepsAsThePolicySays(t *testing.T) {
	j := newJournal(t)
	j.finishRequested("a", "key#0", events.Policy{Retain: 15 * time.Minute, RetainCount: 1}, "1")
	j.seal(9 * time.Minute)
	j.add("a", &events.Rescheduled{At: j.now})
	if j.state.Held() != 0 || j.state.Live() != 1 {
		t.Errorf("%d are held and %d live while it waits for its next run", j.state.Held(), j.state.Live())
	}
	j.add("a", j.started("a"))
	j.add("a", &events.Succeeded{Run: 2})
	for i, row := range []struct {
		pause  time.Duration
		held   int
		exists bool
	}{{9 * time.Minute, 1, true}, {2 * time.Minute, 1, true}, {3 * time.Minute, 0, true}, {2 * time.Minute, 0, true}, {0, 0, false}} {
		j.add(events.TaskID(fmt.Sprint("other", i)), j.created())
		j.seal(0)
		if exists := j.state.Task("a") != nil; j.state.Held() != row.held || exists != row.exists {
			t.Errorf("entry %d: %d are held, and the task exists: %t; want %d, %t", i, j.state.Held(), exists, row.held, row.exists)
		}
		j.pass(row.pause)
	}
}

// Its last outcome may be long ago when the further run that it waits for is taken away: only then its request has its
// outcome.
func TestRetention_HoldsFromWhenTheNextRunIsTakenAway(t *testing.T) {
	const day = 24 * time.Hour
	j := newJournal(t)
	for _, task := range []struct {
		id      events.TaskID
		request string
		retain  time.Duration
	}{{"request", "key#0", time.Second}, {"first", "", 30 * time.Minute}, {"policy", "", time.Hour}} {
		j.finishRequested(task.id, task.request, events.Policy{Retain: task.retain}, "1")
		j.add(task.id, &events.Rescheduled{At: j.now})
		j.add(task.id, j.started(task.id))
		j.add(task.id, &events.Succeeded{Run: 2, Next: j.now.Add(2 * day)})
	}
	j.seal(day)
	for _, id := range []events.TaskID{"policy", "request", "first"} {
		j.add(id, &events.Rescheduled{})
	}
	for i, row := range []struct {
		pause time.Duration
		kept  []events.TaskID
	}{
		{projection.HoldRequests, []events.TaskID{"request", "first", "policy"}},
		{time.Millisecond, []events.TaskID{"request", "first", "policy"}},
		{20 * time.Minute, []events.TaskID{"first", "policy"}},
		{time.Minute, []events.TaskID{"policy"}},
		{29 * time.Minute, []events.TaskID{"policy"}},
		{0, nil},
	} {
		j.add(events.TaskID(fmt.Sprint("other", i)), j.created())
		j.seal(0)
		if got := j.kept("request", "first", "policy"); !slices.Equal(got, row.kept) {
			t.Errorf("entry %d: %v are kept, want %v", i, got, row.kept)
		}
		checkPlaces(t, replay(t, j.entries), j.now)
		j.pass(row.pause)
	}
}

// The wall clock of an owner jumps by hours: who repeats a request a moment later meets its task.
func TestRetention_HoldsWhatARequestMadeAlsoWhenTheClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour + time.Second, 26 * time.Hour} {
		j := newJournal(t)
		j.finishRequested("a", "key#0", events.Policy{Retain: time.Second}, "")
		j.seal(5 * time.Second)
		for i := range 3 {
			j.add(events.TaskID(fmt.Sprint("other", i)), j.created())
			j.seal(jump)
		}
		if j.state.Task("a") == nil {
			t.Errorf("forgotten after jumps of %s", jump)
		}
		checkPlaces(t, replay(t, j.entries), j.now)
		j.pass(projection.HoldRequests)
		j.add("last", j.created())
		j.seal(0)
		if j.state.Task("a") != nil {
			t.Error("held for ever")
		}
	}
}

// A request that meets what has ended long ago gets its outcome, and can be repeated as any other.
func TestRetention_HoldsFromTheLatestRequestThatJoined(t *testing.T) {
	j := newJournal(t)
	for _, id := range []events.TaskID{"joined", "alone"} {
		j.finishRequested(id, "", events.Policy{Retain: time.Hour}, "1")
	}
	j.seal(59 * time.Minute)
	ev := j.next("joined", &events.Joined{})
	ev.RequestID = "key#0"
	j.addEvent(ev)
	for i, row := range []struct {
		pause time.Duration
		kept  []events.TaskID
	}{
		{2 * time.Minute, []events.TaskID{"joined", "alone"}},
		{8*time.Minute - time.Millisecond, []events.TaskID{"joined"}},
		{time.Millisecond, []events.TaskID{"joined"}},
		{time.Millisecond, []events.TaskID{"joined"}},
		{0, nil},
	} {
		j.add(events.TaskID(fmt.Sprint("other", i)), j.created())
		j.seal(0)
		if got := j.kept("joined", "alone"); !slices.Equal(got, row.kept) {
			t.Errorf("entry %d: %v are kept, want %v", i, got, row.kept)
		}
		checkPlaces(t, replay(t, j.entries), j.now)
		j.pass(row.pause)
	}
}

// They are what a shard has to have room for, as its live tasks are, and no longer when retention may forget them.
func TestLiveBytes_CountWhatIsHeld(t *testing.T) {
	j := newJournal(t)
	j.finishRequested("a", "key#0", events.Policy{}, "7")
	j.pass(projection.HoldRequests + time.Millisecond)
	if got, want := j.state.LiveBytes(), bytesOf(j.state.Task("a")); got != want {
		t.Errorf("a held task counts as %d bytes, want %d", got, want)
	}
	j.finishRequested("b", "", events.Policy{}, "7")
	j.seal(0)
	if got := j.state.LiveBytes(); got != 0 || j.state.Finished() != 2 {
		t.Errorf("%d finished tasks count as %d bytes, want 2 and none", j.state.Finished(), got)
	}
	j.add("a", &events.Deleted{})
	j.finishRequested("a", "key#0", events.Policy{}, "7")
	j.add("a", &events.Deleted{})
	if got := j.state.LiveBytes(); got != 0 || j.state.Held() != 0 {
		t.Errorf("%d are held and count as %d bytes after they were deleted", j.state.Held(), got)
	}
}

// The last task of a behavior goes, and its queue with it; one that comes next must not be put into that queue.
func TestKind_ThatWentIsMadeAnewForTheNextTask(t *testing.T) {
	j := newJournal(t)
	for i := range 300 {
		c := j.created()
		c.Behavior = fmt.Sprint("b", i)
		j.add("x", c)
		j.add("x", &events.Failed{Error: events.Error{Code: "x"}, Run: 1})
		j.add("x", &events.Deleted{})
		j.add("x", c)
		j.state.MakeDue(j.now)
		if next := j.state.Ready(c.Behavior); next == nil || next.ID != "x" {
			t.Fatalf("behavior %d: %v is ready, want x", i, next)
		}
		j.add("x", &events.Failed{Error: events.Error{Code: "x"}, Run: 1})
		j.add("x", &events.Deleted{})
	}
}

// Behaviors and policies come and go for years; what nobody has must not stay.
func TestMemory_KindsWithoutTasksGo(t *testing.T) {
	j := newJournal(t)
	j.add("stays", j.created())
	for i := range 10_000 {
		c := j.created()
		c.Behavior, c.Policy.MaxAttempts = fmt.Sprint("b", i%5000), i+1
		id := events.TaskID(fmt.Sprint("t", i%10))
		j.add(id, c)
		j.add(id, &events.Failed{Error: events.Error{Code: "x"}, Run: 1})
		j.add(id, &events.Deleted{})
		if i%1000 == 999 {
			j.seal(0)
		}
		if kinds, groups := j.state.Kinds(); kinds > 200 || groups > 200 {
			t.Fatalf("%d kinds and %d groups of one live task", kinds, groups)
		}
	}
	j.seal(0)
	if got := j.state.Ready("work"); got == nil || got.ID != "stays" {
		t.Errorf("%v is ready, want the one that stays", got)
	}
}

// Others come and go behind one that waits for ever, or come as a crowd and go in the same order or the other way
// round.
func TestMemory_EmptyPlacesOfAQueueGo(t *testing.T) {
	j := newJournal(t)
	id := func(i int) events.TaskID { return events.TaskID(fmt.Sprint("t", i)) }
	j.add("stays", j.created())
	j.add(id(0), j.created())
	for i := range 2000 {
		j.add(id(i+1), j.created())
		j.add(id(i), &events.Deleted{})
	}
	if got := j.state.Places("work"); got > 16 {
		t.Errorf("room for %d tasks where two are", got)
	}
	const crowd = 5000
	for _, next := range []func(i int) int{func(i int) int { return i }, func(i int) int { return crowd - 1 - i }} {
		j.seal(0)
		for i := range crowd {
			j.add(events.TaskID(fmt.Sprint("c", i)), j.created())
		}
		for i := range crowd {
			j.add(events.TaskID(fmt.Sprint("c", next(i))), &events.Deleted{})
		}
		if got := j.state.Places("work"); got > 1024 {
			t.Errorf("room for %d tasks where two are", got)
		}
	}
}

// Nodes come and go for years.
func TestMemory_NodesWithoutTasksGo(t *testing.T) {
	j := newJournal(t)
	for i := range 100 {
		j.add("a", j.created())
		start := j.started("a")
		start.Node = fmt.Sprint("n-", i)
		j.add("a", start)
		if got := j.state.RunningNodes(); len(got) != 1 || got[0] != start.Node || j.state.Nodes() != 1 {
			t.Fatalf("tasks run on %v, of %d that are remembered; want one on %s", got, j.state.Nodes(), start.Node)
		}
		j.add("a", &events.Succeeded{Run: 1})
		j.add("a", &events.Deleted{})
		if got := j.state.RunningNodes(); len(got) != 0 {
			t.Fatalf("tasks run on %v, want none", got)
		}
	}
}

func TestRetention_FinishedTaskLeavesPayloadsToTheJournal(t *testing.T) {
	j := newJournal(t)
	large := events.JSON([]byte(strings.Repeat("7", projection.MaxKeptResult)))
	j.finish("large", time.Hour, large)
	j.finish("small", time.Hour, events.JSON([]byte("7")))
	if a := j.state.Task("large"); a.Result != nil || !a.ResultElided || a.Params != nil || !a.ParamsElided {
		t.Errorf("large result kept: %+v", a)
	}
	if a := j.state.Task("small"); a.Result == nil || a.ResultElided || !a.ParamsElided {
		t.Errorf("small result dropped: %+v", a)
	}
	j.add("large", &events.Rescheduled{At: j.now})
	j.add("large", j.started("large"))
	if a := j.state.Task("large"); a.ResultElided || !a.ParamsElided || a.ParamsAt != a.Created {
		t.Errorf("in the next run: %+v", a)
	}
	j.add("large", &events.Merged{Params: large})
	if a := j.state.Task("large"); a.ParamsElided || a.Params == nil || a.ParamsAt != a.Last {
		t.Errorf("after a merge: %+v", a)
	}
}

// fail takes a task from nothing to a final failure, with a policy that keeps as little as one can.
func (j *journal) fail(id events.TaskID, e events.Error) {
	c := j.created()
	c.Policy.Retain, c.Policy.RetainCount = time.Millisecond, 1
	j.add(id, c)
	j.add(id, &events.Failed{Error: e, Run: 1})
}

func TestRetention_FailuresAreKeptForTwoWeeksWhateverThePolicyAndTheSuccessesAre(t *testing.T) {
	j := newJournal(t)
	j.fail("a", events.Error{Code: "x"})
	j.fail("b", events.Error{Code: "x"})
	for i := range 10 {
		j.finish(events.TaskID(fmt.Sprint("t", i)), time.Millisecond, nil)
	}
	j.seal(projection.RetainFailures)
	for _, row := range []struct {
		pause time.Duration
		kept  []events.TaskID
	}{{time.Millisecond, []events.TaskID{"a", "b"}}, {0, nil}} {
		j.add(events.TaskID(fmt.Sprint("other", row.pause)), j.created())
		j.seal(row.pause)
		if got := j.kept("a", "b", "t0", "t9"); !slices.Equal(got, row.kept) || j.state.Finished() != len(row.kept) {
			t.Errorf("%v are kept, of %d, want %v", got, j.state.Finished(), row.kept)
		}
		checkPlaces(t, replay(t, j.entries), j.now)
	}
}

func TestRetention_FailuresHaveACountOfTheirOwnWithinThatOfTheShard(t *testing.T) {
	j := newJournal(t)
	for i := range projection.MaxFailures + 1 {
		if i%1000 == 999 {
			j.seal(time.Millisecond)
		}
		j.fail(events.TaskID(fmt.Sprint("f", i)), events.Error{Code: "x"})
	}
	j.seal(0)
	if got := j.kept("f0", "f1"); !slices.Equal(got, []events.TaskID{"f1"}) || j.state.Finished() != projection.MaxFailures {
		t.Errorf("%v are kept of the first failures, of %d", got, j.state.Finished())
	}
	for i := range projection.MaxFinished - projection.MaxFailures + 1 {
		if i%1000 == 999 {
			j.seal(time.Millisecond)
		}
		id := events.TaskID(fmt.Sprint("t", i))
		c := j.created()
		c.Policy.RetainCount = projection.MaxFinished
		j.add(id, c)
		j.add(id, j.started(id))
		j.add(id, &events.Succeeded{Run: 1})
	}
	j.seal(0)
	if got := j.kept("f1", "t0", "t1"); !slices.Equal(got, []events.TaskID{"f1", "t1"}) || j.state.Finished() != projection.MaxFinished {
		t.Errorf("%v are kept of the first failures and successes, of %d", got, j.state.Finished())
	}
}

func TestRetention_FailuresHaveBytesOfTheirOwn(t *testing.T) {
	j := newJournal(t)
	text := strings.Repeat("y", projection.MaxKeptError)
	j.fail("t00000", events.Error{Code: "x", Message: text})
	most := projection.MaxFailureBytes / int(bytesOf(j.state.Task("t00000")))
	for i := range most {
		j.fail(events.TaskID(fmt.Sprintf("t%05d", i+1)), events.Error{Code: "x", Message: text})
		if i%100 == 99 {
			j.seal(time.Millisecond)
		}
	}
	j.seal(0)
	if got := j.kept("t00000", "t00001"); !slices.Equal(got, []events.TaskID{"t00001"}) || j.state.Finished() != most || j.state.LiveBytes() != 0 {
		t.Errorf("kept %v, in all %d of %d, with %d live bytes", got, j.state.Finished(), most, j.state.LiveBytes())
	}
}

func TestRetention_FinalFailureLeavesTheRestOfItsErrorToTheJournal(t *testing.T) {
	j := newJournal(t)
	large := events.Error{Code: "x", Message: strings.Repeat("ä", projection.MaxKeptError), Retryable: true, Properties: map[string]string{"stderr": "y"}}
	small := events.Error{Code: "x", Message: "y", Properties: map[string]string{"exit_code": "1"}}
	j.fail("large", large)
	j.fail("small", small)
	if a := j.state.Task("large"); !a.ErrorElided || a.Error.Code != "x" || !a.Error.Retryable || a.Error.Message != strings.Repeat("ä", projection.MaxKeptError/2) || a.Error.Properties != nil {
		t.Errorf("of a large error: %t, %.40q, %v", a.ErrorElided, a.Error.Message, a.Error.Properties)
	}
	if a := j.state.Task("small"); a.ErrorElided || a.Error.Message != "y" || a.Error.Properties["exit_code"] != "1" {
		t.Errorf("of a small error: %+v", a.Error)
	}
	j.seal(0)
	checkPlaces(t, replay(t, j.entries), j.now)
	j.add("large", &events.Rescheduled{At: j.now})
	j.add("large", j.started("large"))
	if a := j.state.Task("large"); a.ErrorElided || a.Error != nil {
		t.Errorf("in the next run: %+v", a.Error)
	}
}

func TestRetention_ScheduleHoldsItsLastOutcome(t *testing.T) {
	j := newJournal(t)
	j.add("tick", j.created())
	j.add("tick", j.started("tick"))
	j.add("tick", &events.Succeeded{Run: 1, Next: j.now.Add(72 * time.Hour), Result: events.JSON([]byte("7"))})
	j.seal(50 * time.Hour)
	j.add("other", j.created())
	j.seal(0)
	if a := j.state.Task("tick"); a == nil || a.Result == nil || a.Params == nil || j.state.Finished() != 0 {
		t.Errorf("a task with a next run was treated as finished: %+v", a)
	}
}

func TestSenders_RememberedForAnHourAfterLastUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := newJournal(t)
		used := map[projection.SenderLane]*projection.Decided{}
		usedAt := map[projection.SenderLane]events.Millis{}
		clock := j.now // no gap between entries counts more than a minute
		for entry := range rapid.IntRange(1, 100).Draw(t, "entries") {
			for range rapid.IntRange(0, 4).Draw(t, "origins") {
				lane := projection.SenderLane{Sender: rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "sender"), Lane: rapid.Uint8Range(0, 1).Draw(t, "lane")}
				number := uint64(1)
				if d := used[lane]; d != nil {
					number = d.Number + 1
				}
				answers := []byte{byte(entry)}
				j.entry.AddOrigin(events.Origin{Sender: lane.Sender, Lane: lane.Lane, Number: number, Answers: answers})
				used[lane] = &projection.Decided{SenderLane: lane, Number: number, Answers: answers}
				usedAt[lane] = clock
			}
			j.add(events.TaskID(fmt.Sprint("t", entry)), j.created())
			gap := time.Duration(rapid.IntRange(0, 300).Draw(t, "seconds")) * time.Second
			j.seal(gap)
			for lane := range used {
				if usedAt[lane]+projection.KeepSenders < clock {
					delete(used, lane)
				}
			}
			if got := j.state.Senders(); got != len(used) {
				t.Fatalf("%d lanes remembered, want %d", got, len(used))
			}
			for lane, want := range used {
				got := j.state.Decided(lane)
				if got == nil || got.Number != want.Number || string(got.Answers) != string(want.Answers) {
					t.Fatalf("%v is remembered as %+v, want %+v", lane, got, want)
				}
			}
			clock = clock.Add(min(gap, time.Minute))
		}
		if j.state.Decided(projection.SenderLane{Sender: "stranger"}) != nil {
			t.Fatal("a lane never used is remembered")
		}
	})
}

// The wall clock of an owner jumps by hours: what was decided a moment ago is not decided again.
func TestSenders_OutliveAClockThatJumps(t *testing.T) {
	j := newJournal(t)
	lane := projection.SenderLane{Sender: "x"}
	j.entry.AddOrigin(events.Origin{Sender: lane.Sender, Number: 1})
	for i := range 4 {
		j.add(events.TaskID(fmt.Sprint(i)), j.created())
		j.seal(3 * projection.KeepSenders * time.Millisecond)
		if j.state.Decided(lane) == nil {
			t.Fatalf("forgotten after %d jumps", len(j.entries)-1)
		}
	}
}

// A shard may hold a million of these.
func TestMemory_DelayedTaskCostsAtMost512Bytes(t *testing.T) {
	const count = 50_000
	before := liveHeap()
	j := delayed(t, count)
	j.entries, j.entry = nil, events.Builder{}
	each := float64(liveHeap()-before) / count
	t.Logf("%.0f bytes of live heap for each task", each)
	if each > 512 {
		t.Errorf("%.0f bytes of live heap for each task, want at most 512", each)
	}
	runtime.KeepAlive(j)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
