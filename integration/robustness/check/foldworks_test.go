package check_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/integration/robustness/check"
)

// The task of a work, and its second worker.
const (
	own          events.TaskID = "a/p"
	secondWorker events.TaskID = "a/p.w2"
)

func on(id events.TaskID, body events.Body) events.Event { return events.Event{Task: id, Body: body} }

// started returns the Ref of an event of a shard: those of attempts are the first of their entries.
func started(entry uint64) events.Ref { return events.RefOf(entry, 0) }

func gives(worker uint32, attempt events.Ref, bucket uint64) events.Event {
	return on(own, &events.BucketsMoved{
		Worker:  worker,
		Attempt: attempt,
		Started: bucket,
	})
}

func ends(worker uint32, attempt events.Ref, bucket uint64, items events.ItemCounts, next uint64) events.Event {
	return on(own, &events.BucketsMoved{
		Worker:  worker,
		Attempt: attempt,
		Ended:   bucket,
		Items:   items,
		Started: next,
	})
}

func returns(worker uint32, attempt events.Ref, bucket uint64, cause events.ReturnCause) events.Event {
	return on(own, &events.BucketsMoved{
		Worker:   worker,
		Attempt:  attempt,
		Returned: bucket,
		Cause:    cause,
	})
}

func permits(bucket uint64, simulate bool, items ...uint64) events.Event {
	return on(own, &events.PermitsGranted{
		Counter:  "changes",
		Bucket:   bucket,
		Simulate: simulate,
		Items:    items,
	})
}

// plans begins a run with a bucket that is simulated, and then three for two workers.
func plans(run uint32) events.Event {
	limit := []events.WorkThreshold{{Counter: "changes", Limit: 2}}
	return on(own, &events.WorkPlanned{
		Run: run,
		Partitions: []events.WorkPartition{
			{ID: "think", Mode: events.ModeSimulate, Buckets: 1, Workers: 1, Threads: 1, Thresholds: limit},
			{ID: "do", Buckets: 3, Workers: 2, Threads: 1, Thresholds: limit},
		},
	})
}

func begins(partition uint32) events.Event {
	return on(own, &events.PartitionStarted{Partition: partition})
}

func partEnds(partition uint32) events.Event {
	return on(own, &events.PartitionEnded{Partition: partition})
}

func runs(id events.TaskID) events.Event { return on(id, &events.Started{Node: "n", Attempt: 1}) }

func worker(number uint32) events.Event {
	return on(events.WorkerID(own, number), &events.Created{Ties: events.Ties{Parent: own}})
}

func fails(id events.TaskID, code string, run uint32, next events.Millis) events.Event {
	return on(id, &events.Failed{Error: events.Error{Code: code}, Run: run, Next: next})
}

func again() events.Event { return on(own, &events.Rescheduled{At: 1}) }

var noItems events.ItemCounts

// journal holds the entries of a shard, by number from 1 on.
type journal map[uint64][]events.Event

// aWork is a history of a work that goes through all that may become of one.
func aWork() journal {
	one, two := started(2), started(22)
	return journal{
		1:  {on(own, &events.Created{})},
		2:  {runs(own)},
		3:  {plans(1)},
		4:  {begins(1)},
		5:  {gives(1, one, 1)},
		6:  {permits(1, true, 7)},
		7:  {ends(1, one, 1, noItems, 0), partEnds(1)},
		8:  {begins(2)},
		9:  {gives(1, one, 1), worker(2)},
		10: {runs(secondWorker)},
		11: {gives(2, started(10), 2)},
		12: {permits(2, false, 7, 8)},
		13: {on(secondWorker, &events.Lost{Node: "n"}), returns(2, started(10), 2, events.ReturnedLost)},
		14: {runs(secondWorker)},
		15: {gives(2, started(14), 2)},
		16: {ends(1, one, 1, events.ItemCounts{Done: 5}, 3)},
		17: {ends(2, started(14), 2, events.ItemCounts{Done: 1, Failed: 1}, 0)},
		18: {ends(1, one, 3, events.ItemCounts{Skipped: 2}, 0), partEnds(2)},
		19: {on(secondWorker, &events.Succeeded{Run: 1})},
		20: {on(own, &events.Succeeded{Run: 1})},
		21: {on(own, &events.WorkPlanned{Run: 2, Failed: true}), again()},
		22: {runs(own)},
		23: {begins(1), partEnds(1)},
		24: {begins(2)},
		25: {gives(1, two, 2)},
		26: {ends(1, two, 2, noItems, 0), partEnds(2)},
		27: {on(own, &events.Succeeded{Run: 2})},
		28: {on(own, &events.WorkReset{What: events.ResetAll})},
		29: {again()},
		30: {runs(own)},
		31: {plans(3)},
	}
}

// hold folds a history up to an entry, and returns the first problem.
func hold(h journal, last uint64) (w *check.WorkFold, problem string) {
	w = &check.WorkFold{}
	for _, n := range slices.Sorted(maps.Keys(h)) {
		if n > last {
			break
		}
		for i := range h[n] {
			ev := h[n][i]
			ev.Position.Ref, ev.At = events.RefOf(n, i), events.Millis(n)*second
			if problem, _ := w.Apply(&ev); problem != "" {
				return w, problem
			}
		}
		if problems := w.EndEntry(); len(problems) > 0 {
			return w, problems[0].Text
		}
	}
	return w, ""
}

func TestWorks_OfASoundHistoryAreAllowed(t *testing.T) {
	w, problem := hold(aWork(), 20)
	if problem != "" {
		t.Fatal(problem)
	}
	got, known := w.Items(own)
	want := events.ItemCounts{Done: 6, Failed: 1, Skipped: 2}
	if !known || len(got) != 2 || got[0].Permits["changes"] != 1 || got[1].Items != want || got[1].Permits["changes"] != 2 || got[1].Buckets != 3 {
		t.Errorf("the run has come to %+v, %t", got, known)
	}
	if _, problem := hold(aWork(), 31); problem != "" {
		t.Error(problem)
	}
}

// forged lays entries over a sound history: the last of them is the one to be accused.
type forged struct {
	name    string
	entries journal
	text    string
}

func TestWorks_ThatBreakAPromiseAreAccused(t *testing.T) {
	one := started(2)
	for _, f := range []forged{
		{"a bucket that is done is given to a worker that has one", journal{17: {gives(2, started(14), 1)}}, "bucket 1 starts, and is done"},
		{"a bucket that is done is given again", journal{
			16: {ends(1, one, 1, noItems, 0)},
			17: {gives(1, one, 1)},
		}, "bucket 1 starts, and is done"},
		{"a bucket is given to two", journal{11: {gives(2, started(10), 1)}}, "bucket 1 starts, and worker 1 has it"},
		{"a bucket is given to a worker that has one", journal{11: {gives(1, one, 2)}}, "which has bucket 1"},
		{"a bucket is none of the partition", journal{16: {ends(1, one, 1, noItems, 4)}}, "none of the run"},
		{"a bucket is none of the run", journal{25: {gives(1, started(22), 1)}}, "none of the run"},
		{"a free bucket is passed over", journal{11: {gives(2, started(10), 3)}}, "bucket 3 starts, and bucket 2 is free"},
		{"a bucket is given to an attempt that is over", journal{14: {gives(2, started(10), 2)}}, "which does not run"},
		{"a bucket is given before the attempt starts", journal{10: {gives(2, started(14), 2)}}, "which does not run"},
		{"a bucket is given to no worker", journal{11: {gives(3, started(10), 2)}}, "has never been there"},
		{"a bucket is ended by an attempt that is over", journal{
			13: {on(secondWorker, &events.Lost{}), ends(2, started(10), 2, noItems, 0)},
		}, "by an attempt that is over"},
		{"a bucket is ended by another attempt than has it", journal{16: {ends(2, started(14), 1, noItems, 0)}}, "it is of attempt 2097152 of worker 1"},
		{"a bucket is ended that nobody has", journal{16: {ends(1, one, 3, noItems, 0)}}, "bucket 3 of attempt"},
		{"more buckets are open than there are workers", journal{
			3: {on(own, &events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{{ID: "do", Buckets: 3, Workers: 1}}})},
			5: {worker(2)},
		}, "which makes them 2 of at most 1"},
		{"more buckets are open than the plan allows", journal{
			3: {on(own, &events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{{ID: "do", Buckets: 3, Workers: 1}}})},
			5: {on(own, &events.Snoozed{Until: 1 << 40}), worker(2)},
			6: {again()},
			7: {runs(secondWorker)},
			8: {gives(2, started(7), 1)},
			9: {runs(own), gives(1, started(9), 2)},
		}, "bucket 2 starts beside 1 others"},
		{"a loss leaves its bucket", journal{13: {on(secondWorker, &events.Lost{})}}, "bucket 2 is not returned in the same entry"},
		{"a release leaves its bucket", journal{13: {on(secondWorker, &events.Released{})}}, "bucket 2 is not returned in the same entry"},
		{"a snooze leaves its bucket", journal{13: {on(secondWorker, &events.Snoozed{})}}, "bucket 2 is not returned in the same entry"},
		{"a failure leaves its bucket", journal{13: {fails(secondWorker, "no", 0, 1)}}, "bucket 2 is not returned in the same entry"},
		{"the end of the run leaves buckets of others", journal{
			13: {fails(own, "no", 1, 0), returns(1, one, 1, events.ReturnedFailed)},
		}, "its run has ended, and 1 buckets"},
		{"a bucket returns because of a loss that was a failure", journal{
			13: {fails(secondWorker, "no", 0, 1), returns(2, started(10), 2, events.ReturnedGivenUp)},
		}, "returned for cause 1"},
		{"a bucket returns because of a failure that was a loss", journal{
			13: {on(secondWorker, &events.Lost{}), returns(2, started(10), 2, events.ReturnedFailed)},
		}, "returned for cause 2"},
		{"a bucket returns while its attempt runs", journal{13: {returns(2, started(10), 2, events.ReturnedGivenUp)}}, "that its attempt runs is true"},
		{"all buckets return while the run goes on", journal{13: {on(own, &events.BucketsMoved{Cause: events.ReturnedGivenUp})}}, "and the run goes on"},
		{"a permit is beyond the limit", journal{12: {permits(2, false, 7, 8, 9)}}, "3 permits of counter"},
		{"a permit is beyond the limit together with others", journal{
			12: {permits(2, false, 7, 8)},
			13: {permits(2, false, 9)},
		}, "1 permits of counter \"changes\" beyond 2"},
		{"an item is counted twice", journal{12: {permits(2, false, 7)}, 13: {permits(2, false, 7)}}, "counted twice"},
		{"an item is counted twice by one event", journal{12: {permits(2, false, 7, 7)}}, "counted twice"},
		{"an item is counted again after a loss", journal{12: {permits(2, false, 7)}, 16: {permits(2, false, 7)}}, "counted twice"},
		{"a permit is of another mode", journal{12: {permits(2, true, 7)}}, "another mode"},
		{"a simulated permit counts as a full one", journal{6: {permits(1, false, 7)}}, "another mode"},
		{"a permit is of a bucket that is not open", journal{12: {permits(3, false, 7)}}, "not open"},
		{"a permit is of a counter that is not there", journal{
			12: {on(own, &events.PermitsGranted{Counter: "deletes", Bucket: 2, Items: []uint64{1}})},
		}, "does not have"},
		{"a counter trips before its limit", journal{
			6: {on(own, &events.Failed{Run: 1, Error: events.Error{
				Code:       events.CodeThreshold,
				Properties: map[string]string{"partition": "think", "counter": "changes"},
			}})},
		}, "trips at 0"},
		{"a permit follows a trip", journal{
			12: {fails(own, events.CodeThreshold, 1, 0), permits(2, false, 7)},
		}, "a permit: the work has ended"},
		{"a permit while the work is suspended", journal{
			11: {gives(2, started(10), 2), on(own, &events.Suspended{})},
		}, "a permit: the work is suspended"},
		{"a bucket while the work is suspended", journal{10: {runs(secondWorker), on(own, &events.Suspended{})}}, "bucket 2 starts: the work is suspended"},
		{"a partition while the work is suspended", journal{7: {ends(1, one, 1, noItems, 0), partEnds(1), on(own, &events.Suspended{})}}, "a partition starts: the work is suspended"},
		{"a worker while the work is suspended", journal{8: {begins(2), gives(1, one, 1), on(own, &events.Suspended{})}, 9: {worker(2)}}, "a worker is created: the work is suspended"},
		{"a bucket after a cancel", journal{10: {runs(secondWorker), on(own, &events.CancelRequested{})}}, "bucket 2 starts: the work is cancelled"},
		{"a bucket for a worker that is cancelled", journal{10: {runs(secondWorker), on(secondWorker, &events.CancelRequested{})}}, "worker 2, which is cancelled"},
		{"a bucket after the end of the run", journal{
			10: {runs(secondWorker), fails(own, "no", 1, 0), on(own, &events.BucketsMoved{Cause: events.ReturnedGivenUp})},
			11: {gives(2, started(10), 1)},
		}, "bucket 1 starts: the work has ended"},
		{"a bucket after the last retry was taken away", journal{
			10: {runs(secondWorker), fails(own, "no", 0, 1), returns(1, one, 1, events.ReturnedFailed), on(own, &events.Rescheduled{})},
			11: {gives(2, started(10), 1)},
		}, "bucket 1 starts: the work has ended"},
		{"a partition begins before the one before has ended", journal{6: {begins(2)}}, "partition 2 of 2 starts"},
		{"a partition begins twice", journal{5: {begins(1)}}, "partition 1 of 2 starts"},
		{"a partition is left out", journal{4: {begins(2)}}, "partition 2 of 2 starts"},
		{"a partition is beyond the last", journal{19: {begins(3)}}, "partition 3 of 2 starts"},
		{"a partition begins without an attempt", journal{8: {on(own, &events.Lost{}), begins(2)}}, "without an attempt"},
		{"a partition ends before its buckets", journal{6: {partEnds(1)}}, "partition 1 ends"},
		{"a partition does not end with its buckets", journal{7: {ends(1, one, 1, noItems, 0)}}, "does not end in the same entry"},
		{"a run is planned while one is under way", journal{8: {plans(1)}}, "what it has counted is forgotten"},
		{"a run is planned while buckets are open", journal{6: {plans(1)}}, "while 1 buckets are open"},
		{"a run has another number", journal{3: {plans(2)}}, "run 2 is planned"},
		{"a run is planned without an attempt", journal{2: {}, 3: {plans(1)}}, "without an attempt"},
		{"a run over failed buckets that has none", journal{
			17: {ends(2, started(14), 2, noItems, 0)},
			21: {on(own, &events.WorkPlanned{Run: 2, Failed: true})},
		}, "that has none"},
		{"a reset while it runs", journal{8: {on(own, &events.WorkReset{What: events.ResetAll})}}, "a reset of a work that runs"},
		{"a worker beyond the limit", journal{10: {worker(3)}}, "which makes them 3 of at most 2"},
		{"a number of a worker again", journal{
			10: {on(secondWorker, &events.Failed{Run: 1}), on(secondWorker, &events.Deleted{})},
			11: {worker(2)},
		}, "worker 2 is created after worker 2"},
		{"a worker after the end of the run", journal{
			20: {on(own, &events.Succeeded{Run: 1}), worker(3)},
		}, "no partition is under way"},
		{"a bucket of a task without a work", journal{3: {gives(1, one, 1)}}, "of a task without a work"},
	} {
		h := aWork()
		maps.Copy(h, f.entries)
		last := slices.Max(slices.Collect(maps.Keys(f.entries)))
		if _, before := hold(h, slices.Min(slices.Collect(maps.Keys(f.entries)))-1); before != "" {
			t.Errorf("%s: accused before: %s", f.name, before)
		}
		if _, problem := hold(h, last+1); !strings.Contains(problem, f.text) {
			t.Errorf("%s: the problem is %q, want one with %q", f.name, problem, f.text)
		}
	}
}

// Each is laid over the sound history, of which what follows is left out.
func TestWorks_ThatKeepTheirPromisesInACornerAreNotAccused(t *testing.T) {
	one := started(2)
	all := on(own, &events.BucketsMoved{Cause: events.ReturnedGivenUp})
	for name, entries := range map[string]journal{
		"an attempt of a suspended work ends its bucket": {
			13: {on(own, &events.Suspended{})},
			14: {ends(2, started(10), 2, noItems, 0)},
			15: {on(own, &events.Released{}), returns(1, one, 1, events.ReturnedGivenUp)},
		},
		"a suspended work goes on where it was": {
			13: {on(own, &events.Suspended{}), on(secondWorker, &events.Suspended{})},
			14: {on(own, &events.Released{}), returns(1, one, 1, events.ReturnedGivenUp)},
			15: {on(own, &events.Resumed{}), runs(own)},
			16: {gives(1, events.RefOf(15, 1), 1)},
		},
		"a worker gives a bucket back": {13: {returns(2, started(10), 2, events.ReturnedByWorker)}, 14: {gives(2, started(10), 2)}},
		"the run ends, and all buckets return": {
			13: {fails(own, events.CodeThreshold, 1, 0), all, on(secondWorker, &events.CancelRequested{})},
			14: {fails(secondWorker, events.CodeCancelled, 1, 0)},
		},
		"a retry of the failure goes on, with the counters kept": {
			13: {fails(own, events.CodeThreshold, 1, 0), all, on(secondWorker, &events.CancelRequested{})},
			14: {again(), fails(secondWorker, events.CodeCancelled, 1, 0)},
			15: {runs(own)},
			16: {gives(1, started(15), 1), worker(3)},
			17: {on("a/p.w3", &events.Started{})},
			18: {gives(3, started(17), 2)},
		},
		"an attempt that failed for good loses its retry": {
			13: {fails(own, "no", 0, 1), returns(1, one, 1, events.ReturnedFailed)},
			14: {on(own, &events.Rescheduled{}), all},
		},
		"the work's own task fails, and others go on": {
			13: {fails(own, "no", 0, 1), returns(1, one, 1, events.ReturnedFailed)},
			14: {ends(2, started(10), 2, noItems, 1)},
		},
		"a worker that ended is followed by another": {
			13: {fails(secondWorker, events.CodeLost, 1, 0), returns(2, started(10), 2, events.ReturnedGivenUp)},
			14: {worker(3)},
		},
		"another worker takes the bucket of the coordinator that sleeps": {
			10: {on(own, &events.Snoozed{Until: 1 << 40}), returns(1, one, 1, events.ReturnedGivenUp), worker(3)},
		},
		"counters are reset, and count anew": {
			13: {fails(own, events.CodeThreshold, 1, 0), all},
			14: {on(own, &events.WorkReset{What: events.ResetThresholds}), again()},
			15: {runs(own)},
			16: {gives(1, started(15), 1)},
			17: {permits(1, false, 7, 8)},
		},
		"counters are reset, and permits are kept": {
			13: {fails(own, events.CodeThreshold, 1, 0), all},
			14: {on(own, &events.WorkReset{What: events.ResetCounts}), again()},
			15: {runs(own)},
			16: {gives(1, started(15), 1)},
			17: {permits(1, false, 9, 10)},
		},
		"a counter trips at its limit": {
			13: {on(own, &events.Failed{Run: 1, Error: events.Error{
				Code:       events.CodeThreshold,
				Properties: map[string]string{"partition": "do", "counter": "changes"},
			}}), all},
		},
		"a run after a success": {
			21: {again()},
			22: {runs(own)},
			23: {plans(2)},
			24: {begins(1)},
		},
		"a work is deleted and begins another life": {
			21: {on(own, &events.Deleted{})},
			22: {on(own, &events.Created{})},
			23: {runs(own)},
			24: {plans(1)},
		},
		"a task that is cancelled plans, and begins nothing": {
			3: {on(own, &events.CancelRequested{}), plans(1)},
			4: {fails(own, events.CodeCancelled, 1, 0)},
		},
		"a task that only has the id of a worker": {11: {on("a/p.w3", &events.Created{})}},
	} {
		h := aWork()
		maps.Copy(h, entries)
		if _, problem := hold(h, slices.Max(slices.Collect(maps.Keys(entries)))); problem != "" {
			t.Errorf("%s: %s", name, problem)
		}
	}
}
