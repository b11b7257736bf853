package progress_test

import (
	"testing"

	"taskledger/events"
	"taskledger/task"
	"taskledger/work/progress"
)

const minute events.Millis = 60_000

// part returns a partition of so many buckets.
func part(total, done, open uint64) progress.Partition {
	p := progress.Partition{ID: "p", Mode: "full", Buckets: progress.Buckets{Total: total, Done: done, Open: open}}
	if done+open > 0 {
		p.StartedAt = 1
	}
	if total == done {
		p.EndedAt = 2
	}
	return p
}

func counted(p progress.Partition, inOpen, expected uint64) progress.Partition {
	p.Items.InOpen, p.Items.Expected = inOpen, &expected
	return p
}

func parts(all ...progress.Partition) []progress.Partition { return all }

func TestProgress_IsToldInWords(t *testing.T) {
	t.Parallel()
	planned := func(current int) progress.Facts { return progress.Facts{Planned: true, Current: current} }
	for name, c := range map[string]struct {
		parts []progress.Partition
		facts progress.Facts
		state progress.State
		words string
	}{
		"planned": {
			parts(part(200, 0, 0)),
			planned(0), progress.NotStarted, "not started",
		},
		"under way": {
			parts(part(200, 25, 3)),
			planned(1), progress.InProgress, "12.5 % (25 of 200 buckets)",
		},
		"whole percents": {
			parts(part(100, 23, 3)),
			planned(1), progress.InProgress, "23 % (23 of 100 buckets)",
		},
		"almost all": {
			parts(part(100_000, 99_999, 1)),
			planned(1), progress.InProgress, "99.9 % (99999 of 100000 buckets)",
		},
		"as many as may be": {
			parts(part(1e9, 1e9-1, 1)),
			planned(1), progress.InProgress, "99.9 % (999999999 of 1000000000 buckets)",
		},
		"none yet": {
			parts(part(3, 0, 1)),
			planned(1), progress.InProgress, "0 % (0 of 3 buckets)",
		},
		"complete": {
			parts(part(200, 200, 0)),
			planned(1), progress.Complete, "complete",
		},
		"one bucket": {
			parts(part(1, 0, 1)),
			planned(1), progress.InProgress, "in progress",
		},
		"one bucket, counted": {
			parts(counted(part(1, 0, 1), 2500, 25000)),
			planned(1), progress.InProgress, "10 % (2500 of 25000 items)",
		},
		"more than expected": {
			parts(counted(part(1, 0, 1), 30, 25)),
			planned(1), progress.InProgress, "100 % (30 of 25 items)",
		},
		"none expected": {
			parts(counted(part(1, 0, 1), 0, 0)),
			planned(1), progress.InProgress, "in progress",
		},
		"several, second": {
			parts(part(4, 4, 0), part(100, 23, 1), part(9, 0, 0)),
			planned(2), progress.InProgress, "23 % in 2/3",
		},
		"several, between": {
			parts(part(4, 4, 0), part(100, 0, 0)),
			planned(1), progress.InProgress, "100 % in 1/2",
		},
		"several, one bucket": {
			parts(part(1, 1, 0), part(1, 0, 1)),
			planned(2), progress.InProgress, "in 2/2",
		},
		"several, complete": {
			parts(part(1, 1, 0), part(2, 2, 0)),
			planned(2), progress.Complete, "complete",
		},
		"nothing failed before": {
			parts(part(0, 0, 0), part(5, 1, 1)),
			planned(2), progress.InProgress, "20 % in 2/2",
		},
		"reset": {
			parts(part(5, 0, 0)),
			progress.Facts{}, progress.NotStarted, "not started",
		},
		"suspended": {
			parts(part(8, 1, 0)),
			progress.Facts{Planned: true, Current: 1, Suspended: true},
			progress.Suspended, "12.5 % (1 of 8 buckets)",
		},
		"one bucket, suspended": {
			parts(part(1, 0, 1)),
			progress.Facts{Planned: true, Current: 1, Suspended: true},
			progress.Suspended, "suspended",
		},
		"one bucket, failed": {
			parts(part(1, 0, 1)),
			progress.Facts{Planned: true, Current: 1, Final: true},
			progress.Failed, "failed",
		},
	} {
		w := progress.Work{Status: task.Running, Partitions: c.parts}
		if c.facts.Final {
			w.Status = task.Failure
		}
		w.Derive(c.facts)
		if w.State != c.state || w.Progress != c.words {
			t.Errorf("%s: %s, %q, want %s, %q", name, w.State, w.Progress, c.state, c.words)
		}
	}
}

// The items that were counted are those of all buckets, and a rerun may have one.
func TestProgress_OfARerunCountsBuckets(t *testing.T) {
	t.Parallel()
	p := counted(part(1, 0, 1), 90, 1000)
	p.WallClockMs = 10_000
	w := progress.Work{Status: task.Running, FailedOnly: true, Partitions: parts(p)}
	w.Derive(progress.Facts{Planned: true, Current: 1})
	if w.Progress != "0 % (0 of 1 buckets)" || w.Partitions[0].TimeLeftMs != nil {
		t.Errorf("%q, %v left", w.Progress, w.Partitions[0].TimeLeftMs)
	}
}

func TestProgress_APartitionUnderWayHasTheStateOfTheWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		facts  progress.Facts
		status task.Status
		want   progress.State
	}{
		{progress.Facts{}, task.Running, progress.InProgress},
		{progress.Facts{Suspended: true}, task.Running, progress.Suspended},
		{progress.Facts{Final: true}, task.Failure, progress.Failed},
		{progress.Facts{Final: true, Suspended: true}, task.Failure, progress.Failed},
		{progress.Facts{}, task.Failure, progress.InProgress}, // a retry is due
	} {
		w := progress.Work{
			Status:     c.status,
			Partitions: []progress.Partition{part(4, 4, 0), part(4, 1, 0), part(4, 0, 0)},
		}
		c.facts.Planned, c.facts.Current = true, 2
		w.Derive(c.facts)
		is := [...]progress.State{w.State, w.Partitions[0].State, w.Partitions[1].State, w.Partitions[2].State}
		if want := [...]progress.State{c.want, progress.Complete, c.want, progress.NotStarted}; is != want {
			t.Errorf("%+v: %v, want %v", c.facts, is, want)
		}
	}
}

func TestProgress_RatesAndTimeLeftFollowFromWhatIsDone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		done, total, items uint64
		wall               int64
		items1, buckets1   float64 // a second; 0 = unknown
		left               int64   // -1 = unknown
	}{
		"a quarter":     {25, 100, 5000, 10_000, 500, 2.5, 30_000},
		"three digits":  {3, 9, 10, 3_000, 3.33, 1, 6_000},
		"nothing done":  {0, 100, 0, 10_000, 0, 0, -1},
		"no time":       {1, 100, 5, 0, 0, 0, -1},
		"empty buckets": {10, 20, 0, 1_000, 0, 10, 1_000},
		"for ever":      {1, 1e9, 1, 1 << 60, 8.67e-16, 8.67e-16, 1<<62 - 1},
	} {
		p := part(c.total, c.done, 1)
		p.WallClockMs, p.Items.Done = c.wall, c.items
		w := progress.Work{Status: task.Running, Partitions: []progress.Partition{p}}
		w.Derive(progress.Facts{Planned: true, Current: 1})
		p = w.Partitions[0]
		value := func(x *float64) float64 {
			if x == nil {
				return 0
			}
			return *x
		}
		left := int64(-1)
		if p.TimeLeftMs != nil {
			left = *p.TimeLeftMs
		}
		items, buckets := value(p.ItemsPerSecond), value(p.BucketsPerSecond)
		if items != c.items1 || buckets != c.buckets1 || left != c.left && c.left < 1<<60 || c.left > 1<<60 && left < 1<<61 {
			t.Errorf("%s: %g items, %g buckets a second, %d ms left; want %+v", name, items, buckets, left, c)
		}
	}
}

func TestProgress_WhatDoesNotGoOnHasNoTimeLeft(t *testing.T) {
	t.Parallel()
	for name, facts := range map[string]progress.Facts{
		"ended":     {Planned: true, Current: 1, Final: true},
		"suspended": {Planned: true, Current: 1, Suspended: true},
		"goes on":   {Planned: true, Current: 1},
	} {
		w := progress.Work{Partitions: []progress.Partition{{
			StartedAt:   1,
			WallClockMs: 1000,
			Buckets:     progress.Buckets{Total: 4, Done: 1},
		}}}
		if facts.Final {
			w.Status = task.Failure
		}
		w.Derive(facts)
		if got := w.Partitions[0].TimeLeftMs; (got != nil) != (name == "goes on") {
			t.Errorf("%s: %v, state %s", name, got, w.Partitions[0].State)
		}
	}
}

func TestProgress_ACompletePartitionHasNoTimeLeft(t *testing.T) {
	t.Parallel()
	p := part(4, 4, 0)
	p.WallClockMs = 1000
	w := progress.Work{Partitions: []progress.Partition{p, part(2, 0, 0)}}
	w.Derive(progress.Facts{Planned: true, Current: 1})
	for i, p := range w.Partitions {
		if p.TimeLeftMs != nil || p.StalledSince != 0 {
			t.Errorf("partition %d: %v ms left, stalled since %v", i+1, *p.TimeLeftMs, p.StalledSince)
		}
	}
}

func TestProgress_HasStalledSinceTheLastBucketThatEndedWhileOthersAreOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		last, busy, now events.Millis
		open            uint64
		want            events.Millis
	}{
		"just now":               {10 * minute, 1, 20*minute - 1, 1, 0},
		"long ago":               {10 * minute, 1, 20 * minute, 1, 10 * minute},
		"nothing is open":        {10 * minute, 0, 50 * minute, 0, 0},
		"none has ended":         {0, 5 * minute, 15 * minute, 1, 5 * minute},
		"resumed after a pause":  {10 * minute, 90 * minute, 95 * minute, 1, 0},
		"stalled after a resume": {10 * minute, 90 * minute, 100 * minute, 1, 90 * minute},
	} {
		p := part(9, 1, c.open)
		p.LastBucketAt = c.last
		w := progress.Work{At: c.now, Partitions: []progress.Partition{p}}
		w.Derive(progress.Facts{Planned: true, Current: 1, BusyFrom: c.busy})
		if is := w.Partitions[0].StalledSince; is != c.want {
			t.Errorf("%s: stalled since %d, want %d", name, is, c.want)
		}
	}
}

func TestProgress_ItemsAndWallClockOfAWorkAreThoseOfItsPartitions(t *testing.T) {
	t.Parallel()
	one, two := part(2, 2, 0), part(3, 1, 1)
	one.Items, one.WallClockMs = progress.Items{Done: 1, Failed: 2, Skipped: 3}, 100
	two.Items, two.WallClockMs = progress.Items{Done: 10, Failed: 20, Skipped: 30, InOpen: 4}, 50
	w := progress.Work{Partitions: []progress.Partition{one, two}, Items: progress.Items{Done: 99}, WallClockMs: 99}
	w.Derive(progress.Facts{Planned: true, Current: 2})
	if want := (progress.Items{Done: 11, Failed: 22, Skipped: 33, InOpen: 4}); w.Items != want || w.WallClockMs != 150 {
		t.Errorf("%+v in %d ms", w.Items, w.WallClockMs)
	}
}

func TestProgress_NamesTheThresholdThatHasTripped(t *testing.T) {
	t.Parallel()
	two := func(mode string, count uint64) progress.Partition {
		p := part(3, 1, 0)
		p.ID, p.Mode = mode, mode
		p.Thresholds = []progress.Threshold{
			{Counter: "deletes", Count: count, Limit: 10},
			{Counter: "adds", Count: 10, Limit: 10},
		}
		return p
	}
	w := progress.Work{
		Status: task.Failure,
		Error: &events.Error{
			Code:       "threshold",
			Properties: map[string]string{"partition": "full", "counter": "deletes"},
		},
		Partitions: []progress.Partition{two("simulate", 10), two("full", 10)},
	}
	facts := progress.Facts{Planned: true, Final: true, Current: 2}
	w.Derive(facts)
	for _, p := range w.Partitions {
		for _, c := range p.Thresholds {
			if want := p.ID == "full" && c.Counter == "deletes"; c.Tripped != want || c.Mode != p.Mode {
				t.Errorf("%s of %s: %+v", c.Counter, p.ID, c)
			}
		}
	}
	w.Partitions[1].Thresholds[0].Count = 0 // as a reset leaves it
	if w.Derive(facts); w.Partitions[1].Thresholds[0].Tripped {
		t.Error("a counter that was reset has tripped")
	}
}

func TestProgress_ARuleThatStopsAtItsFirstFailureHasTrippedUntilAReset(t *testing.T) {
	t.Parallel()
	rule := part(3, 1, 0)
	rule.ID = "all"
	rule.Thresholds = []progress.Threshold{{Counter: "failures:0", Limit: 1}}
	w := progress.Work{
		Status: task.Failure,
		Error: &events.Error{
			Code:       events.CodeStopped,
			Properties: map[string]string{"partition": "all", "rule": "0"},
		},
		Partitions: []progress.Partition{rule},
	}
	facts := progress.Facts{Planned: true, Final: true, Current: 1}
	if w.Derive(facts); !w.Partitions[0].Thresholds[0].Tripped {
		t.Error("it has not tripped")
	}
	facts.Cleared = true
	w.Partitions[0].Thresholds[0].Count = 0
	if w.Derive(facts); w.Partitions[0].Thresholds[0].Tripped || w.Partitions[0].Thresholds[0].Count != 0 {
		t.Errorf("after a reset: %+v", w.Partitions[0].Thresholds[0])
	}
}

func TestProgress_AWorkThatWasCancelledAfterItsLastBucketHasFailed(t *testing.T) {
	t.Parallel()
	done := part(3, 3, 0)
	done.EndedAt = 1
	w := progress.Work{Status: task.Failure, Partitions: []progress.Partition{done}}
	w.Derive(progress.Facts{Planned: true, Final: true, Current: 1})
	if w.State != progress.Failed || w.Partitions[0].State != progress.Complete {
		t.Errorf("%s, its partition %s", w.State, w.Partitions[0].State)
	}
}

func TestDerive_TellsThatAFullStreamHasNotEndedWhereItsSimulationDid(t *testing.T) {
	for name, c := range map[string]struct {
		token string
		to    string
		ended events.Millis
		want  bool
	}{
		"elsewhere":         {"12", "99", 7, true},
		"there":             {"99", "99", 7, false},
		"not yet":           {"12", "99", 0, false},
		"behind no other":   {"12", "", 7, false},
		"at the beginning":  {"", "99", 7, true},
		"without any token": {"", "", 7, false},
	} {
		w := progress.Work{
			Status: task.Running,
			Stream: &progress.Stream{Token: c.token, SimulatedTo: c.to},
			Partitions: []progress.Partition{
				{ID: "try", Mode: "simulate", Stream: "precise", EndedAt: 5},
				{ID: "do", Mode: "full", Stream: "precise", EndedAt: c.ended},
			},
		}
		w.Derive(progress.Facts{Planned: true, Current: 2})
		if w.Stream.Unsimulated != c.want {
			t.Errorf("%s: %t", name, w.Stream.Unsimulated)
		}
	}
}
