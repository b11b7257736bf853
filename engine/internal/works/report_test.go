package works_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/task"
	"taskledger/work/progress"
	"taskledger/work/workledger"
)

// report asks how far the work is, as clients do.
func (w *world) report() progress.Work {
	w.t.Helper()
	got, err := w.look(parent)
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	return got
}

func (w *world) look(id events.TaskID) (progress.Work, error) {
	asks := works.Asks{Shards: 1, Read: func(_ context.Context, _ int, c command.Command) (command.Answer, error) {
		found, _ := w.Answer(c, w.now, command.Budget{})
		return found.Answer(), nil
	}}
	return asks.Look(context.Background(), id, false)
}

func TestReport_FollowsAWorkFromItsPlanToItsEnd(t *testing.T) {
	w := inWork(t, 4, 3, task.Policy{}, func(p *events.WorkPartition) { p.Mode = events.ModeSimulate })
	w.now += 1000
	r := w.report()
	if r.State != progress.InProgress || r.Progress != "0 % (0 of 4 buckets)" || r.Behavior != "work" ||
		r.Status != task.Running {
		t.Errorf("begun: %+v", r)
	}
	if len(r.Open) != 3 || r.Open[1].Number != 2 || r.Open[1].Task != worker(2) {
		t.Errorf("open: %+v", r.Open)
	}
	p := r.Partitions[0]
	if p.Mode != "simulate" || p.Buckets.Open != 3 || p.WallClockMs < 1000 || p.TimeLeftMs != nil {
		t.Errorf("partition: %+v", p)
	}
	is := r.Workers
	if is.Active != 3 || is.Running != 3 || len(is.Nodes) != 3 || is.Nodes[0].Session != "n-1" ||
		is.Nodes[0].Buckets != 1 {
		t.Errorf("workers: %+v", is)
	}
	w.now += 1000
	w.move(parent, works.Bucket{Ended: 1, Done: 7, Failed: 2, Skipped: 1, Want: true})
	r = w.report()
	p = r.Partitions[0]
	if r.Progress != "25 % (1 of 4 buckets)" || p.Items != (progress.Items{Done: 7, Failed: 2, Skipped: 1}) ||
		p.LastBucketAt != w.now || p.Buckets.Failed != 1 || *p.TimeLeftMs != 3*p.WallClockMs {
		t.Errorf("a bucket is done: %+v", p)
	}
	for worker, bucket := range map[events.TaskID]uint64{parent: 4, worker(2): 2, worker(3): 3} {
		w.move(worker, works.Bucket{Ended: bucket, Done: 1})
	}
	before := w.report().WallClockMs
	w.now += 5000
	r = w.report()
	if r.State != progress.Complete || r.Progress != "complete" || len(r.Open) != 0 || r.WallClockMs != before ||
		r.Items.Done != 10 {
		t.Errorf("complete: %+v", r)
	}
}

// Time in which no bucket is open is not counted, and what several do at once counts once.
func TestReport_WallClockIsTheTimeInWhichBucketsAreOpen(t *testing.T) {
	w := inWork(t, 9, 3, task.Policy{})
	begun := w.report().WallClockMs
	w.now += 1000
	w.operate(parent, task.Suspend)
	for _, id := range w.running() {
		w.complete(id, command.Released)
	}
	w.now += 60_000
	r := w.report()
	if got := r.WallClockMs - begun; got != 1000 {
		t.Errorf("%d ms, want 1000", got)
	}
	if r.State != progress.Suspended || r.Partitions[0].State != progress.Suspended || r.Workers.Running != 0 ||
		len(r.Open) != 0 {
		t.Errorf("suspended: %+v", r)
	}
}

func TestReport_TellsTheThresholdThatHasEndedTheWorkUntilItIsReset(t *testing.T) {
	w := inWork(t, 10, 1, task.Policy{}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "added", Limit: 9}, {Counter: "deleted", Limit: 2}}
	})
	w.permit(parent, "deleted", 1, 2)
	w.permit(parent, "deleted", 3)
	r := w.report()
	want := []progress.Threshold{
		{Counter: "added", Mode: "full", Limit: 9},
		{Counter: "deleted", Mode: "full", Count: 2, Limit: 2, Tripped: true},
	}
	if r.State != progress.Failed || r.Error == nil || r.Error.Code != events.CodeThreshold ||
		!slices.Equal(r.Partitions[0].Thresholds, want) {
		t.Errorf("%+v", r)
	}
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetThresholds)})
	if got := w.report().Partitions[0].Thresholds[1]; got.Count != 0 || got.Tripped {
		t.Errorf("after a reset: %+v", got)
	}
}

func TestReport_ACountThatHangsIsSeenAndHasStalledAfterAWhile(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	w.plan("5f", part("one", 1, 1), part("two", 1, 1))
	counts := func(place int, words string) {
		t.Helper()
		since := w.now
		for _, wait := range []events.Millis{progress.StallAfter - 1, 1} {
			w.now += wait
			r := w.report()
			p := r.Partitions[place]
			stalled := events.Millis(0)
			if w.now-since >= progress.StallAfter {
				stalled = since
			}
			if p.BeginsSince != since || p.StalledSince != stalled || p.Progress != "beginning" || r.Progress != words {
				t.Errorf("%s: partition %+v, want one that begins since %d, and has stalled since %d", r.Progress, p, since, stalled)
			}
			if other := r.Partitions[1-place].BeginsSince; other != 0 {
				t.Errorf("the other partition begins since %d", other)
			}
		}
	}
	counts(0, "beginning")
	w.begin(1)
	w.take(parent)
	if p := w.report().Partitions[0]; p.BeginsSince != 0 || p.StalledSince != 0 {
		t.Errorf("under way: %+v", p)
	}
	w.end(parent, 1)
	counts(1, "100 % in 1/2")
	w.complete(parent, command.Released)
	if p := w.report().Partitions[1]; p.BeginsSince != 0 || p.Progress != "not started" {
		t.Errorf("without an attempt: %+v", p)
	}
}

func TestReport_AWorkThatRepeatsHasFailedUntilItsNextRunBegins(t *testing.T) {
	w := inWork(t, 4, 1, task.Policy{MaxAttempts: 1, Every: time.Hour}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "deleted", Limit: 2}}
	})
	w.now += 1000
	w.end(parent, 1)
	w.permit(parent, "deleted", 1, 2, 3)
	if is := w.task(parent); is.Final() || !is.RunEnded {
		t.Fatalf("final %t, its run has ended %t, want a repetition", is.Final(), is.RunEnded)
	}
	failed := func(when string) {
		t.Helper()
		r := w.report()
		p := &r.Partitions[0]
		if r.State != progress.Failed || p.State != progress.Failed || !p.Thresholds[0].Tripped || p.TimeLeftMs != nil {
			t.Errorf("%s: the work %s, the partition %s, %+v", when, r.State, p.State, p.Thresholds)
		}
	}
	failed("before the repetition")
	w.now += events.Millis(time.Hour / time.Millisecond)
	failed("when it is due")
	w.operate(parent, task.Retry)
	w.start(parent, "n-1")
	if r := w.report(); r.State != progress.InProgress || r.Partitions[0].Thresholds[0].Tripped {
		t.Errorf("in the next run: %+v", r)
	}
}

func TestReport_TellsHowManyItemsOfAnOpenBucketItsAttemptHasProcessed(t *testing.T) {
	w := inWork(t, 1, 1, task.Policy{})
	tell := func(note string, done int64) {
		is := w.task(parent)
		w.must(&command.Progress{
			Task:     parent,
			Started:  is.Started,
			Node:     is.Node,
			Progress: events.Progressed{Done: done, Note: note},
		})
	}
	for _, c := range []struct {
		note string
		done int64
		want uint64
	}{
		{"something else", 7, 0},
		{progress.Note("all", 2), 7, 0},
		{progress.Note("all", 1), 7, 7},
		{progress.Note("all", 1), -1, 0},
	} {
		tell(c.note, c.done)
		r := w.report()
		got := [...]uint64{r.Items.InOpen, r.Partitions[0].Items.InOpen, r.Open[0].InOpen}
		if got != [...]uint64{c.want, c.want, c.want} {
			t.Errorf("%q, %d: %v, want %d", c.note, c.done, got, c.want)
		}
	}
}

func TestReport_OfATaskWithoutAWorkIsNotFound(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	for _, id := range []events.TaskID{parent, "nobody"} {
		if _, err := w.look(id); !errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), string(id)) {
			t.Errorf("%s: %v", id, err)
		}
	}
	_, err := w.look(events.TaskID(strings.Repeat("x", events.MaxIDBytes+1)))
	if err == nil || errors.Is(err, task.ErrNotFound) {
		t.Errorf("an id that is too long: %v", err)
	}
}

func TestReport_OfAWorkerOfADeletedWorkNamesIt(t *testing.T) {
	w := inWork(t, 4, 2, task.Policy{})
	named := func() {
		t.Helper()
		want := string(parent) + ", which is not there"
		if _, err := w.look(worker(2)); !errors.Is(err, task.ErrNotFound) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	w.complete(parent, command.Failed) // to be tried again
	w.operate(parent, task.Delete)
	named()
	w.complete(worker(2), command.Released)
	if !w.task(worker(2)).Final() {
		t.Fatal("the worker has not ended")
	}
	named()
}

// failures walks back over the events that were told, as a page of errors does.
func (w *world) failures() (all []progress.Failures) {
	r := w.report()
	walk := progress.Walk{Version: r.Version.Ref}
	for i, p := range r.Partitions {
		walk.Partitions = append(walk.Partitions, p.ID)
		if p.StartedAt != 0 {
			walk.Current = i + 1
		}
	}
	for _, ev := range slices.Backward(w.told) {
		if ev.Task != parent {
			continue
		}
		if f, is := walk.Take(&ev); is {
			all = append(all, f)
		}
	}
	return all
}

func TestFailures_AreThoseOfTheRunByPartitionAndBucket(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	plan := []events.WorkPartition{part("one", 2, 1), part("two", 3, 1)}
	fails := func(bucket uint64, n uint64, keys ...string) {
		var errs []events.ItemError
		for _, k := range keys {
			errs = append(errs, events.ItemError{Item: k, Code: "boom", Message: "of " + k})
		}
		var text wire.Writer
		events.EncodeItemErrors(&text, errs)
		w.move(parent, works.Bucket{Ended: bucket, Done: 1, Failed: n, Errors: text.B, Want: true})
	}
	w.plan("5f", plan...)
	w.begin(1)
	w.take(parent)
	fails(1, 1, "a")
	fails(2, 0)
	w.begin(2)
	w.take(parent)
	fails(1, 30, "b", "c")
	fails(2, 0)
	told := func() string {
		var words []string
		for _, f := range w.failures() {
			words = append(words, f.Partition)
			for _, e := range f.Errors {
				words = append(words, e.Item+e.Message)
			}
		}
		return strings.Join(words, " ")
	}
	if got := told(); got != "two bof b cof c one aof a" {
		t.Errorf("while the second runs: %q", got)
	}
	fails(3, 1, "d")
	if got := told(); got != "two dof d two bof b cof c one aof a" {
		t.Errorf("at the end: %q", got)
	}
	all, r := w.failures(), w.report()
	if all[1].Failed != 30 || r.Items.Failed != 32 || all[1].Bucket != 1 || all[1].EndedAt == 0 {
		t.Errorf("%+v of %+v", all[1], r.Items)
	}
	w.complete(parent, command.Succeeded)
	w.must(&works.Rerun{Task: string(parent)})
	if got := told(); got != "" {
		t.Errorf("of a run that has just begun: %q", got)
	}
	w.start(parent, "n-1")
	w.plan("5f", plan...)
	w.begin(1)
	w.take(parent)
	fails(1, 1, "again")
	if got := told(); got != "one againof again" {
		t.Errorf("of the second run: %q", got)
	}
	w.complete(parent, command.Failed, func(c *command.Complete) { c.ByPolicy = false })
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetThresholds)})
	if got := told(); got != "one againof again" {
		t.Errorf("after a reset of thresholds: %q", got)
	}
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetAll)})
	if got := told(); got != "" {
		t.Errorf("after a reset: %q", got)
	}
}

func TestReport_ACounterThatWasResetHasNotTrippedUntilTheNextFailure(t *testing.T) {
	w := inWork(t, 3, 1, task.Policy{}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: workledger.FailuresPrefix + "0", Limit: 0}}
	})
	told := func() bool {
		t.Helper()
		return w.report().Partitions[0].Thresholds[0].Tripped
	}
	trip := func() {
		t.Helper()
		if w.permit(parent, workledger.FailuresPrefix+"0", 1); !told() {
			t.Error("a rule that has stopped the work has not tripped")
		}
	}
	trip()
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetThresholds)})
	if told() {
		t.Error("it has tripped, and was reset")
	}
	w.operate(parent, task.Retry)
	w.start(parent, "n-1")
	w.take(parent)
	trip()
}
