package projection_test

import (
	"fmt"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/projection"
	"taskledger/projection/works"
)

// workBody returns a body of the kind that the work of a task allows as it is, nil for none.
func workBody(j *journal, t *projection.Task, kind events.Kind) events.Body {
	if t == nil {
		return nil
	}
	of := works.Of(j.state).Work(t.ID)
	if kind == events.KindWorkPlanned {
		if of != nil && len(of.Open()) > 0 {
			return nil
		}
		if t.Runs%2 == 1 {
			return &events.WorkPlanned{Run: t.Runs + 1, Partitions: []events.WorkPartition{
				{ID: "try", Mode: events.ModeSimulate, Buckets: 1, Workers: 1, Threads: 1, Form: events.FormPrecise},
				{ID: "all", Buckets: 1, Workers: 1, Threads: 2, Form: events.FormPrecise},
			}}
		}
		return &events.WorkPlanned{Run: t.Runs + 1, Definition: "d", Partitions: []events.WorkPartition{
			{ID: "try", Mode: events.ModeSimulate, Buckets: 2, Workers: 2, Threads: 1},
			{ID: "all", Buckets: 3, Workers: 1, Threads: 2, Segments: []byte("x"), Thresholds: []events.WorkThreshold{{Counter: "c", Limit: 3}}},
		}}
	}
	if of == nil {
		return nil
	}
	part, plan := of.Part()
	switch kind {
	case events.KindPartitionStarted:
		if of.Planned && part == nil && of.Current < len(of.Parts) {
			return &events.PartitionStarted{Partition: uint32(of.Current + 1), Counted: true, Expected: 7}
		}
	case events.KindPartitionEnded:
		if part != nil && part.Done == part.Total {
			return &events.PartitionEnded{Partition: uint32(of.Current)}
		}
	case events.KindBucketsMoved:
		if has := of.Has(1); has != nil {
			return &events.BucketsMoved{Worker: 1, Attempt: has.Attempt, Ended: has.Bucket, Items: events.ItemCounts{Done: 2, Failed: 1}}
		}
		if count, least := of.Free(); count > 0 && t.Started != 0 && !t.Suspended && !t.Final() {
			return &events.BucketsMoved{Worker: 1, Attempt: t.Started, Started: least}
		}
	case events.KindPermitsGranted:
		if part != nil && len(of.Open()) > 0 && len(plan.Thresholds) > 0 && part.Counters[0] < 3 && !t.Suspended {
			return &events.PermitsGranted{Counter: "c", Bucket: of.Open()[0].Bucket, Items: []uint64{part.Counters[0]}}
		}
	case events.KindWorkReset:
		if of.Planned && len(of.Open()) == 0 {
			return &events.WorkReset{What: events.ResetAll}
		}
		if len(of.Open()) == 0 && of.Streams() && (t.Suspended || t.Final()) {
			return &events.WorkReset{What: events.ResetToken, Token: "x", Reason: "moved"}
		}
	}
	return streamBody(of, kind)
}

// streamBody returns a body of the kind that the stream of a work allows as it is, nil for none.
func streamBody(of *works.Work, kind events.Kind) events.Body {
	if h := of.Stream; h != nil && kind == events.KindHoldMoved && h.Len() > 0 {
		first := h.Holds()[0]
		return &events.HoldMoved{Hold: first.Number, Done: 1, Ended: len(first.Changes) == 1}
	}
	_, plan := of.Part()
	if len(of.Open()) == 0 || plan.Form == events.FormBuckets {
		return nil
	}
	attempt := of.Open()[0].Attempt
	switch kind {
	case events.KindTokenMoved:
		return &events.TokenMoved{Attempt: attempt, Token: fmt.Sprint(of.Run), Simulated: plan.Mode != events.ModeFull, Items: events.ItemCounts{Done: 1}}
	case events.KindChangeHeld:
		body := &events.ChangeHeld{Attempt: attempt, Hold: 1, Partition: uint32(of.Current), Key: "k", At: fmt.Sprint(attempt), Data: []byte("1")}
		if of.Stream != nil {
			body.Hold = of.Stream.Last() + 1
			if h := of.Stream.Blocks("k"); h != nil {
				body.Hold = h.Number
			}
			body.Passed = body.Hold%3 == 0 && of.Stream.Blocks("k") == nil
		}
		return body
	}
	return nil
}

// inWork is a journal with a work of a task and two workers, of which one has a bucket.
func inWork(t tb, buckets uint64) *journal {
	j := newJournal(t)
	j.add("a/p", j.created())
	j.add("a/p", j.started("a/p"))
	j.add("a/p", &events.WorkPlanned{Run: 1, Definition: "5f0c", Partitions: []events.WorkPartition{{
		ID:         "all",
		Buckets:    buckets,
		Workers:    3,
		Threads:    4,
		Segments:   []byte("0-9"),
		Thresholds: []events.WorkThreshold{{Counter: "deleted", Limit: 10}},
	}}})
	for _, n := range []uint32{2, 3} {
		created := j.created()
		created.Ties.Parent = "a/p"
		j.add(events.WorkerID("a/p", n), created)
	}
	j.add("a/p.w2", j.started("a/p.w2"))
	j.add("a/p", &events.PartitionStarted{Partition: 1, Counted: true, Expected: 1000})
	j.add("a/p", &events.BucketsMoved{Worker: 2, Attempt: j.state.Task("a/p.w2").Started, Started: 1})
	return j
}

// sampleWorks is a shard with a work that uses every field.
func sampleWorks(t tb) *projection.Shard {
	j := inWork(t, 200)
	first := j.state.Task("a/p").Started
	second := j.state.Task("a/p.w2").Started
	j.add("a/p", &events.BucketsMoved{Worker: 1, Attempt: first, Started: 2})
	j.add("a/p", &events.PermitsGranted{Counter: "deleted", Bucket: 2, Items: []uint64{1 << 63, 7}})
	j.add("a/p", &events.BucketsMoved{Worker: 1, Attempt: first, Ended: 2, Items: events.ItemCounts{Done: 3, Failed: 1},
		Errors: []events.ItemError{{Item: "i", Code: "c", Message: "m"}}, Started: 3})
	j.add("a/p", &events.PermitsGranted{Counter: "deleted", Bucket: 3, Items: []uint64{9}})
	j.add("a/p.w3", &events.Failed{Error: events.Error{Code: "cancelled"}, Run: 1})
	j.seal(1000)
	j.add("a/p.w2", &events.Failed{Error: events.Error{Code: "items"}, Next: j.now})
	j.add("a/p", &events.BucketsMoved{Worker: 2, Attempt: second, Returned: 1, Cause: events.ReturnedFailed})
	third := j.add("a/p.w2", j.started("a/p.w2")).Started
	j.add("a/p", &events.BucketsMoved{Worker: 2, Attempt: third, Started: 1})
	j.add("a/p.w2", &events.Lost{Until: j.now})
	j.add("a/p", &events.BucketsMoved{Worker: 2, Attempt: third, Returned: 1, Cause: events.ReturnedLost})
	j.add("b", j.created())
	j.add("b", j.started("b"))
	j.add("b", &events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{{ID: "one", Buckets: 1, Workers: 1, Threads: 1}}})
	j.seal(1000)
	return j.state
}

func TestGolden_WorksAreStoredAsEver(t *testing.T) { golden(t, "works", sampleWorks(t)) }

// sampleStreams is a shard with a stream that uses every field.
func sampleStreams(t tb) *projection.Shard {
	j := newJournal(t)
	j.add("a/p", j.created())
	first := j.add("a/p", j.started("a/p")).Started
	j.add("a/p", &events.WorkPlanned{Run: 1, Definition: "5f0c", Partitions: []events.WorkPartition{
		{ID: "try", Mode: events.ModeSimulate, Buckets: 1, Workers: 1, Threads: 4, Form: events.FormPrecise},
		{ID: "all", Buckets: 1, Workers: 1, Threads: 4, Form: events.FormPrecise},
	}})
	j.add("a/p", &events.PartitionStarted{Partition: 1})
	j.add("a/p", &events.BucketsMoved{Worker: 1, Attempt: first, Started: 1})
	j.add("a/p", &events.TokenMoved{Attempt: first, Token: "9", Simulated: true, Items: events.ItemCounts{Done: 9}})
	j.add("a/p", &events.BucketsMoved{Worker: 1, Attempt: first, Ended: 1})
	j.add("a/p", &events.PartitionEnded{Partition: 1})
	j.add("a/p", &events.PartitionStarted{Partition: 2})
	j.add("a/p", &events.BucketsMoved{Worker: 1, Attempt: first, Started: 1})
	for n, key := range []string{"k", "y", "z\xff", "x"} {
		number := uint32(n + 1)
		j.add("a/p", &events.ChangeHeld{Attempt: first, Hold: number, Partition: 2, Key: key, At: fmt.Sprint(n), Data: []byte("{}"), Code: "c", Message: "m",
			Passed: number == 2})
		created := j.created()
		created.Ties.Parent = "a/p"
		j.add(events.HoldID("a/p", number), created)
	}
	j.add("a/p", &events.ChangeHeld{Attempt: first, Hold: 1, Partition: 2, Key: "k", At: "5", Data: []byte("[]")})
	j.add("a/p", &events.TokenMoved{Attempt: first, Token: "5\xff", Items: events.ItemCounts{Done: 1, Failed: 1}, Open: 7, Oldest: j.now,
		Errors: []events.ItemError{{Item: "i", Code: "c", Message: "m"}}})
	j.add("a/p.h2", &events.Suspended{Reason: "c: m"})
	j.seal(40_000)
	j.add("a/p", &events.TokenMoved{Attempt: first, Items: events.ItemCounts{Done: 3}, Open: 1})
	j.add("a/p.h1", j.started("a/p.h1"))
	j.add("a/p", &events.HoldMoved{Hold: 1, Done: 1})
	j.add("a/p.h3", &events.Failed{Error: events.Error{Code: "cancelled"}, Run: 1})
	j.add("a/p.h4", j.started("a/p.h4"))
	j.add("a/p", &events.HoldMoved{Hold: 4, Done: 1, Ended: true})
	j.seal(1000)
	return j.state
}

func TestGolden_StreamsAreStoredAsEver(t *testing.T) { golden(t, "streams", sampleStreams(t)) }

// A snapshot of before the moves of a stream told when it last got on is read.
func TestGolden_StreamsOfBeforeAreRead(t *testing.T) {
	of := works.Of(restore(t, [][]byte{stored(t, "streams-before.golden")})).Work("a/p")
	if of == nil || of.Stream == nil || of.Stream.Token != "5\xff" || of.Stream.Len() != 3 || of.Parts[1].Moved != 0 {
		t.Errorf("read as %+v", of)
	}
}

// A snapshot of before works counted the losses of a bucket is read.
func TestGolden_WorksOfBeforeAreRead(t *testing.T) {
	of := works.Of(restore(t, [][]byte{stored(t, "works-before.golden")})).Work("a/p")
	if of == nil || of.Tried(1) != 1 || len(of.Open()) != 1 {
		t.Fatalf("read as %+v", of)
	}
	if _, lost := of.MostLost(); lost != 0 {
		t.Errorf("%d losses", lost)
	}
}

func TestWorks_EndedWorkersAreKeptUntilRetentionForgetsTheirWork(t *testing.T) {
	j := inWork(t, 1)
	second := j.state.Task("a/p.w2").Started
	j.add("a/p", &events.BucketsMoved{Worker: 2, Attempt: second, Ended: 1})
	j.add("a/p", &events.PartitionEnded{Partition: 1})
	j.add("a/p.w2", &events.Succeeded{Run: 1})
	j.add("a/p.w3", j.started("a/p.w3"))
	j.add("a/p.w3", &events.Succeeded{Run: 1})
	j.seal(0)
	retain := j.state.Task("a/p.w2").Kind.Policy.Retain
	j.seal(2 * retain)
	j.add("a/p", &events.Succeeded{Run: 1})
	j.seal(0)
	for _, id := range []events.TaskID{"a/p", "a/p.w2", "a/p.w3"} {
		if j.state.Task(id) == nil {
			t.Errorf("%s is forgotten before its work is", id)
		}
	}
	if work := works.Of(j.state).Work("a/p"); work == nil || !work.Over() || !work.Finished {
		t.Errorf("the work is %+v", work)
	}
	j.seal(2 * retain)
	for range 3 {
		j.add("z", j.created())
		j.add("z", &events.Deleted{})
		j.seal(1)
	}
	for _, id := range []events.TaskID{"a/p", "a/p.w2", "a/p.w3"} {
		if j.state.Task(id) != nil {
			t.Errorf("%s is kept when its work is forgotten", id)
		}
	}
	if s := works.Of(j.state); s.Len() != 0 || s.Bytes() != 0 {
		t.Errorf("%d works of %d bytes are left", s.Len(), s.Bytes())
	}
}

func TestWorks_DeletedLeavesItsWorkersToRetention(t *testing.T) {
	j := inWork(t, 1)
	j.add("a/p.w3", &events.Failed{Error: events.Error{Code: "cancelled"}, Run: 1})
	j.add("a/p", &events.Failed{Error: events.Error{Code: "x"}, Run: 1})
	j.add("a/p", &events.BucketsMoved{Cause: events.ReturnedGivenUp})
	j.seal(0)
	j.add("a/p", &events.Deleted{})
	j.seal(0)
	checkPlaces(t, j.state, j.now)
	if s := works.Of(j.state); s.Len() != 0 || s.Bytes() != 0 {
		t.Errorf("%d works of %d bytes are left", s.Len(), s.Bytes())
	}
	if of, _ := works.Of(j.state).WorkerOf("a/p.w2"); of != nil {
		t.Errorf("a/p.w2 is a worker of a work that is gone")
	}
	j.add("a/p", j.created())
	j.seal(0)
	if restored := restore(t, write(j.state)); restored.Digest(nil) != j.state.Digest(nil) {
		t.Error("restored, the shard differs")
	}
}

func TestWorks_AMillionDoneBucketsTakeLittleOfTheSnapshot(t *testing.T) {
	const buckets = 1_000_000
	j := inWork(t, buckets)
	size := func() (n int) {
		for _, part := range write(j.state) {
			n += len(part)
		}
		return n
	}
	j.seal(0)
	before := size()
	first, second := j.state.Task("a/p").Started, j.state.Task("a/p.w2").Started
	j.add("a/p", &events.BucketsMoved{Worker: 1, Attempt: first, Started: 2})
	has := map[uint32]uint64{1: 2, 2: 1}
	for n := uint64(3); n <= buckets; n++ {
		worker, attempt := uint32(1), first
		if n%2 == 0 {
			worker, attempt = 2, second
		}
		move := &events.BucketsMoved{Worker: worker, Attempt: attempt, Ended: has[worker], Started: n}
		if n%37 == 0 && n < 600_000 {
			move.Items.Failed = 1
		}
		j.add("a/p", move)
		if has[worker] = n; n%8000 == 0 {
			j.seal(0)
			j.entries = nil
		}
	}
	j.seal(0)
	if of := works.Of(j.state).Work("a/p"); of.Parts[0].Done != buckets-2 || of.FailedBuckets() < 16_000 {
		t.Fatalf("%d buckets are done, %d failed", of.Parts[0].Done, of.FailedBuckets())
	}
	if n := size() - before; n > 64<<10 {
		t.Errorf("a million done buckets take %d bytes of the snapshot, want %d at most", n, 64<<10)
	}
}

func TestApply_RefusesEventsThatContradictTheWork(t *testing.T) {
	for name, c := range map[string]struct {
		body    events.Body
		problem string
	}{
		"bucket of another":    {&events.BucketsMoved{Worker: 1, Attempt: 5, Started: 1}, "bucket 1 is done, open"},
		"two at a time":        {&events.BucketsMoved{Worker: 2, Attempt: 5, Started: 2}, "worker 2 has bucket 1"},
		"end of another":       {&events.BucketsMoved{Worker: 3, Attempt: 5, Ended: 1}, "bucket 1 of attempt 5 of worker 3"},
		"end by a zombie":      {&events.BucketsMoved{Worker: 2, Attempt: 5, Ended: 1}, "bucket 1 of attempt 5 of worker 2"},
		"bucket of none":       {&events.BucketsMoved{Worker: 1, Attempt: 5, Started: 11}, "bucket 11 is done, open, or none"},
		"partition again":      {&events.PartitionStarted{Partition: 1}, "partition 1 of 1 starts after 1"},
		"partition not done":   {&events.PartitionEnded{Partition: 1}, "partition 1 ends, 1 is under way"},
		"run of open buckets":  {workPlanned, "while 1 buckets are open"},
		"run of nothing":       {&events.WorkPlanned{Run: 1, Failed: true}, "of which there are none"},
		"permit of no bucket":  {&events.PermitsGranted{Counter: "deleted", Bucket: 2, Items: []uint64{1}}, "bucket 2, which is not open"},
		"permit of no counter": {&events.PermitsGranted{Counter: "d", Bucket: 1, Items: []uint64{1}}, "counter \"d\""},
		"simulated permit":     {&events.PermitsGranted{Counter: "deleted", Bucket: 1, Simulate: true, Items: []uint64{1}}, "another mode"},
		"one item twice":       {&events.PermitsGranted{Counter: "deleted", Bucket: 1, Items: []uint64{1, 1}}, "counted twice"},
		"beyond the limit":     {&events.PermitsGranted{Counter: "deleted", Bucket: 1, Items: make([]uint64, 11)}, "beyond 0 of counter"},
	} {
		j := inWork(t, 10)
		ev := j.next("a/p", c.body)
		before := j.state.Digest(nil)
		_, err := j.state.Apply(j.state.Task("a/p"), &ev)
		if err == nil || !strings.Contains(err.Error(), c.problem) || !strings.Contains(err.Error(), "a/p") {
			t.Errorf("%s: %v, want %q", name, err, c.problem)
		}
		if j.state.Digest(nil) != before {
			t.Errorf("%s: refused, it left a trace", name)
		}
	}
}

func TestApply_RefusesAnEventOfAWorkThatIsNotThere(t *testing.T) {
	j := inPhase(t, projection.OnNode)
	ev := j.next(subject, &events.BucketsMoved{Worker: 1, Attempt: 5, Started: 1})
	if _, err := j.state.Apply(j.state.Task(subject), &ev); err == nil || !strings.Contains(err.Error(), "a task without a work") {
		t.Error(err)
	}
}

func TestApply_RefusesBucketsAndPermitsOfASuspendedWork(t *testing.T) {
	j := inWork(t, 10)
	j.add("a/p", &events.Suspended{})
	for _, body := range []events.Body{
		&events.BucketsMoved{Worker: 1, Attempt: 5, Started: 2},
		&events.PermitsGranted{Counter: "deleted", Bucket: 1, Items: []uint64{1}},
	} {
		ev := j.next("a/p", body)
		if _, err := j.state.Apply(j.state.Task("a/p"), &ev); err == nil {
			t.Errorf("%s of a work that is suspended", ev.Kind())
		}
	}
	j.add("a/p", &events.BucketsMoved{Worker: 2, Attempt: j.state.Task("a/p.w2").Started, Ended: 1})
}

func TestWorks_BeyondTheLimitTheOldestThatEndedIsForgotten(t *testing.T) {
	j := newJournal(t)
	plan := func(i int) events.TaskID {
		id := events.TaskID(fmt.Sprintf("t%d", i))
		j.add(id, j.created())
		j.add(id, j.started(id))
		j.add(id, workPlanned)
		return id
	}
	for i := range works.MaxWorks {
		plan(i)
	}
	j.add("more", j.created())
	j.add("more", j.started("more"))
	ev := j.next("more", workPlanned)
	if _, err := j.state.Apply(j.state.Task("more"), &ev); err == nil || !strings.Contains(err.Error(), "1001 works, want 1000 at most") {
		t.Fatal(err)
	}
	j.add("t5", &events.Succeeded{Run: 1})
	j.add("more", workPlanned)
	if s := works.Of(j.state); s.Len() != works.MaxWorks || s.Work("t5") != nil || s.Work("more") == nil {
		t.Errorf("%d works, t5 %v, more %v", s.Len(), s.Work("t5"), s.Work("more"))
	}
}
