package check_test

import (
	"slices"
	"strings"
	"testing"

	"taskledger/events"
)

func TestWorks_ALossLeavesTheTasksOfAWorkUnknownAndThoseThatAreMadeForItSince(t *testing.T) {
	w, problem := hold(aWork(), 12)
	if problem != "" {
		t.Fatal(problem)
	}
	w.Lost()
	ev := worker(3)
	stranger := on("a/other", &events.Created{})
	for _, ev := range []*events.Event{&ev, &stranger} {
		if problem, _ := w.Apply(ev); problem != "" {
			t.Errorf("%s of %s: %s", ev.Kind(), ev.Task, problem)
		}
	}
	for id, left := range map[events.TaskID]bool{own: true, secondWorker: true, ev.Task: true, stranger.Task: false} {
		if w.Left(id) != left {
			t.Errorf("%s is left: %t, want %t", id, !left, left)
		}
	}
}

func TestWorks_ALossLeavesAWorkUnknownThatIsPlannedSinceByATaskOfBefore(t *testing.T) {
	w, problem := hold(aWork(), 1)
	if problem != "" {
		t.Fatal(problem)
	}
	w.Lost()
	plan, made := plans(1), worker(2)
	for _, ev := range []*events.Event{&plan, &made} {
		if problem, _ := w.Apply(ev); problem != "" || !w.Left(ev.Task) {
			t.Errorf("%s of %s: left %t, %s", ev.Kind(), ev.Task, w.Left(ev.Task), problem)
		}
	}
}

func TestWorks_AWorkerThatGoesOnAfterTheEndIsTold(t *testing.T) {
	h := aWork()
	h[19] = nil
	w, _ := hold(h, 20)
	if told := w.Remains(20 * second); len(told) != 0 {
		t.Errorf("%v is told of a work that ended a moment ago", told)
	}
	if told := w.Remains(21 * second); len(told) != 1 || told[0].Task != own {
		t.Errorf("%v is told of a work that has ended, and a worker that has not", told)
	}
	w, _ = hold(aWork(), 20)
	if told := w.Remains(60 * second); len(told) != 0 {
		t.Errorf("%v is told of a work that ended with its worker", told)
	}
}

func TestWorks_TellWhatOwnersDoUnasked(t *testing.T) {
	w, _ := hold(aWork(), 12)
	for what, is := range map[string]struct {
		ev    events.Event
		tends bool
	}{
		"a worker is created":                  {worker(3), true},
		"a task is created":                    {on("a/q", &events.Created{}), false},
		"a worker is cancelled by somebody":    {on(secondWorker, &events.CancelRequested{}), false},
		"a worker is suspended by somebody":    {on(secondWorker, &events.Suspended{}), false},
		"the work is cancelled":                {on(own, &events.CancelRequested{}), false},
		"the work has reached a limit":         {fails(own, events.CodeThreshold, 1, 0), true},
		"the work fails":                       {fails(own, "no", 1, 0), false},
		"a retry is taken away by somebody":    {on(own, &events.Rescheduled{Reason: "no more"}), false},
		"a retry is taken away before it goes": {on(own, &events.Rescheduled{Reason: "deleted"}), true},
	} {
		if got := w.Tends(&is.ev); got != is.tends {
			t.Errorf("%s: an owner does so unasked: %t, want %t", what, got, is.tends)
		}
	}
	w, _ = hold(aWork(), 20)
	if ev := on(secondWorker, &events.Rescheduled{}); !w.Tends(&ev) {
		t.Error("a worker is cancelled by somebody although its work has ended")
	}
	if !w.Holds(secondWorker) || w.Holds(own) {
		t.Error("want a worker held with its work, and the work's own task left to retention")
	}
	if gone := w.Forgotten(own); !slices.Equal(gone, []events.TaskID{secondWorker}) || w.Holds(secondWorker) {
		t.Errorf("%v is given up with the work", gone)
	}
}

func TestWorks_CountLossesAndFailuresAnewWhenABucketEnds(t *testing.T) {
	w, _ := hold(aWork(), 15)
	if losses, _, is := w.Counts(secondWorker); !is || losses != 1 {
		t.Errorf("the worker was lost %d times, want once", losses)
	}
	w, _ = hold(aWork(), 16) // that of another worker
	if losses, failures, _ := w.Counts(secondWorker); losses != 0 || failures != 0 {
		t.Errorf("the worker was lost %d times and has failed %d times since a bucket ended", losses, failures)
	}
	if _, _, is := w.Counts("a/q"); is {
		t.Error("a task that works on no bucket is counted")
	}
}

func TestWorks_MoreRangesOfFailedBucketsThanAreRememberedAreASpan(t *testing.T) {
	const buckets = 2*16_384 + 3
	h := journal{
		1: {on(own, &events.Created{})},
		2: {runs(own)},
		3: {on(own, &events.WorkPlanned{Run: 1, Partitions: []events.WorkPartition{{ID: "do", Buckets: buckets, Workers: 1}}})},
		4: {begins(1), gives(1, started(2), 1)},
	}
	n := uint64(5)
	for bucket := uint64(1); bucket <= buckets; bucket++ {
		next := (bucket + 1) % (buckets + 1)
		h[n] = []events.Event{ends(1, started(2), bucket, events.ItemCounts{Failed: bucket % 2}, next)}
		n++
	}
	h[n-1] = append(h[n-1], partEnds(1))
	h[n] = []events.Event{on(own, &events.Succeeded{Run: 1})}
	h[n+1] = []events.Event{on(own, &events.WorkPlanned{Run: 2, Failed: true}), again()}
	h[n+2] = []events.Event{runs(own)}
	h[n+3] = []events.Event{begins(1), gives(1, started(n+2), 1)}
	h[n+4] = []events.Event{ends(1, started(n+2), 1, noItems, 2)}
	if _, problem := hold(h, n+4); problem != "" {
		t.Error(problem)
	}
	h[n+4] = []events.Event{ends(1, started(n+2), 1, noItems, 3)}
	if _, problem := hold(h, n+4); !strings.Contains(problem, "bucket 2 is free") {
		t.Errorf("a bucket of the span is passed over: %q", problem)
	}
}
