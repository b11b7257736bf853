package works_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

func TestWork_OfOneWorkerMakesNoSecondTaskAndNoSecondRunOfABucket(t *testing.T) {
	w := inWork(t, 3, 1, task.Policy{})
	for bucket := uint64(1); bucket <= 3; bucket++ {
		m := w.end(parent, bucket)
		if bucket < 3 && (works.State(m.State) != works.Go || m.Bucket != bucket+1) || bucket == 3 && works.State(m.State) != works.Over {
			t.Fatalf("after bucket %d: %+v", bucket, m)
		}
	}
	w.complete(parent, command.Succeeded)
	w.rest()
	if w.state.Len() != 1 {
		t.Errorf("%d tasks, want 1", w.state.Len())
	}
	moves := 0
	for _, ev := range w.told {
		if ev.Kind() == events.KindBucketsMoved {
			moves++
		}
	}
	if moves != 4 {
		t.Errorf("%d events of buckets, want one a bucket and one for the first", moves)
	}
}

func TestWork_HasAsManyWorkersAsItsPlanAndNoMoreThanBuckets(t *testing.T) {
	for _, c := range []struct{ buckets, workers, want int }{{10, 4, 4}, {2, 4, 2}, {1, 4, 1}, {300, 256, 256}} {
		w := inWork(t, uint64(c.buckets), 1, task.Policy{}, func(p *events.WorkPartition) { p.Workers = uint32(c.workers) })
		w.rest()
		if got := w.state.Len(); got != c.want {
			t.Errorf("%d buckets, %d workers: %d tasks, want %d", c.buckets, c.workers, got, c.want)
		}
		for n := uint32(2); n <= uint32(c.want); n++ {
			if got := w.task(worker(n)); got == nil || got.Kind.Behavior != "work" || works.WorkerOf(got.Params[1:]) != parent {
				t.Fatalf("worker %d is %+v", n, got)
			}
		}
	}
}

func TestWork_TheOwnerCreatesABoundedNumberOfWorkersATurn(t *testing.T) {
	w := newWorld(t)
	w.budget = 5
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 100, 20))
	w.begin(1)
	for range 10 {
		before := w.state.Len()
		w.turn()
		w.now++
		if got := w.state.Len() - before; got > 5 {
			t.Fatalf("%d workers in a turn, want 5 at most", got)
		}
	}
	if w.state.Len() != 20 {
		t.Errorf("%d tasks, want 20", w.state.Len())
	}
}

func TestWork_CoordinatorSleepsWhileOthersWorkAndWakesWhenThePartitionEnds(t *testing.T) {
	w := inWork(t, 2, 2, task.Policy{})
	if m := w.end(parent, 1); works.State(m.State) != works.Wait {
		t.Fatalf("%+v", m)
	}
	w.complete(parent, command.Snoozed)
	w.rest()
	if len(w.ready()) > 0 {
		t.Fatalf("%v may start while nothing is free", w.ready())
	}
	if m := w.end(worker(2), 2); works.State(m.State) != works.Over {
		t.Fatalf("%+v", m)
	}
	w.rest()
	if got := w.ready(); !slices.Equal(got, []events.TaskID{parent}) {
		t.Fatalf("%v may start, want the work's own task", got)
	}
	w.start(parent, "n-1")
	if m := w.plan("5f", part("all", 2, 2)); works.State(m.State) != works.Over {
		t.Errorf("%+v", m)
	}
	w.complete(worker(2), command.Succeeded)
	w.complete(parent, command.Succeeded)
	w.rest()
	if w.state.Live() != 0 {
		t.Errorf("%d tasks have not ended", w.state.Live())
	}
}

func TestWork_PartitionsFollowOneAnother(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	w.plan("5f", part("one", 1, 2), part("two", 2, 2))
	if m := w.take(parent); works.State(m.State) != works.Next || m.Partition != 1 {
		t.Fatalf("before a partition: %+v", m)
	}
	if m := w.begin(2); m.Partition != 1 {
		t.Fatalf("the second one before the first: %+v", m)
	}
	w.begin(1)
	w.take(parent)
	if m := w.end(parent, 1); works.State(m.State) != works.Next || m.Partition != 2 {
		t.Fatalf("between partitions: %+v", m)
	}
	w.begin(2)
	w.begin(2) // a second time
	w.take(parent)
	if m := w.end(parent, 1); m.Bucket != 2 {
		t.Fatalf("%+v", m)
	}
	if m := w.end(parent, 2); works.State(m.State) != works.Over {
		t.Fatalf("%+v", m)
	}
}

func TestWork_WhateverEndsAnAttemptReturnsItsBucketInTheSameEntry(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"lost":     func(w *world) { w.lose("n-2") },
		"released": func(w *world) { w.complete(worker(2), command.Released) },
		"snoozed":  func(w *world) { w.complete(worker(2), command.Snoozed) },
		"failed":   func(w *world) { w.complete(worker(2), command.Failed) },
		"succeeded without report": func(w *world) {
			w.complete(worker(2), command.Succeeded)
		},
		"cancelled": func(w *world) {
			w.operate(worker(2), task.Cancel)
			w.complete(worker(2), command.Failed)
		},
	} {
		w := inWork(t, 10, 3, task.Policy{})
		end(w)
		w.wantOpen(map[uint32]uint64{1: 1, 3: 3})
		last := w.entries[len(w.entries)-1]
		if !slices.ContainsFunc(last.Events, func(ev events.Event) bool {
			b, is := ev.Body.(*events.BucketsMoved)
			return is && ev.Task == parent && b.Worker == 2 && b.Returned == 2
		}) {
			t.Errorf("%s: the bucket is not returned in the entry of the end: %+v", name, last.Events)
		}
		if m := w.end(worker(3), 3); m.Bucket != 2 {
			t.Errorf("%s: the next bucket is %+v, want the one that is free", name, m)
		}
	}
}

func TestWork_AttemptThatIsOverIsRefused(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{})
	late := works.Bucket{Ended: 2, Done: 5, Want: true}
	late.Task, late.Started, late.Node = w.attempt(worker(2))
	w.lose("n-2")
	w.now += 60_000
	w.start(worker(2), "n-3")
	w.take(worker(2))
	before := w.state.Digest(nil)
	if a := w.decide(&late); a.Code != command.AnswerStale {
		t.Errorf("a report of an attempt that was lost is answered %d %s", a.Code, a.Text)
	}
	if w.state.Digest(nil) != before {
		t.Error("a report of an attempt that was lost changes the state")
	}
	other := works.Bucket{Ended: 1, Want: true}
	other.Task, other.Started, other.Node = w.attempt(worker(2))
	if a := w.decide(&other); a.Code != command.AnswerStale {
		t.Errorf("an end of another's bucket is answered %d %s", a.Code, a.Text)
	}
	elsewhere := works.Bucket{Ended: 2, Want: true}
	elsewhere.Task, elsewhere.Started, _ = w.attempt(worker(2))
	elsewhere.Node = late.Node
	if a := w.decide(&elsewhere); a.Code != command.AnswerStale {
		t.Errorf("a report of a node that does not run the attempt is answered %d %s", a.Code, a.Text)
	}
}

func TestWork_ABucketAskedForTwiceIsTheSame(t *testing.T) {
	w := inWork(t, 10, 1, task.Policy{})
	if m := w.take(parent); m.Bucket != 1 || works.State(m.State) != works.Go {
		t.Errorf("%+v", m)
	}
}

func TestWork_AWorkerThatEndedForGoodIsReplacedByOneOfAnotherNumber(t *testing.T) {
	w := inWork(t, 10, 3, task.Policy{MaxAttempts: 1})
	w.operate(worker(2), task.Cancel)
	w.complete(worker(2), command.Failed)
	w.rest()
	if w.task(worker(4)) == nil || w.task(worker(5)) != nil {
		t.Errorf("worker 4 is %v, worker 5 %v", w.task(worker(4)), w.task(worker(5)))
	}
}

func TestWork_ATaskThatHasTheIDOfAWorkerIsPassedOver(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	policy, _ := task.Policy{}.Complete()
	w.must(&command.Submit{Task: worker(2), Behavior: "other", Policy: policy, NotBefore: w.now})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 10, 2))
	w.begin(1)
	w.rest()
	if got := w.task(worker(3)); got == nil || w.work().Active() != 1 {
		t.Errorf("worker 3 is %v, %d workers", got, w.work().Active())
	}
}

func TestWork_CancelAndDeleteEndTheWorkersInTheSameEntry(t *testing.T) {
	w := inWork(t, 10, 3, task.Policy{})
	w.complete(worker(3), command.Snoozed)
	w.operate(parent, task.Cancel)
	last := w.entries[len(w.entries)-1]
	if got := w.task(worker(2)); !got.Cancelled || got.Last.Entry() != last.Number {
		t.Errorf("worker 2 is %+v", got)
	}
	if got := w.task(worker(3)); !got.Final() || got.Last.Entry() != last.Number {
		t.Errorf("worker 3 is %+v", got)
	}
	if m := w.end(worker(2), 2); works.State(m.State) != works.Stop || m.Bucket != 0 {
		t.Errorf("a bucket of a cancelled work: %+v", m)
	}
	w.complete(worker(2), command.Released)
	w.complete(parent, command.Released)
	w.rest()
	if w.state.Live() != 0 || len(w.open()) != 0 {
		t.Errorf("%d tasks have not ended, %v is open", w.state.Live(), w.open())
	}

	w = inWork(t, 10, 2, task.Policy{})
	w.complete(parent, command.Failed) // to be tried again
	w.operate(parent, task.Delete)
	last = w.entries[len(w.entries)-1]
	if got := w.task(worker(2)); !got.Cancelled || got.Last.Entry() != last.Number || w.task(parent) != nil {
		t.Errorf("worker 2 is %+v", got)
	}
	if m := w.take(worker(2)); works.State(m.State) != works.Over {
		t.Errorf("a bucket of a deleted work: %+v", m)
	}
	if m := w.join(worker(2)); works.State(m.State) != works.Over {
		t.Errorf("the plan of a deleted work: %+v", m)
	}
}

func TestWork_SuspendedStartsNoBucketAndResumedGoesOnWhereItWas(t *testing.T) {
	w := inWork(t, 10, 3, task.Policy{}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "deleted", Limit: 5}}
	})
	w.operate(parent, task.Suspend)
	slices.Sort(w.stopped)
	if want := []events.TaskID{parent, worker(2), worker(3)}; !slices.Equal(w.stopped, want) {
		t.Errorf("attempts of %v are ended, want %v", w.stopped, want)
	}
	if m := w.permit(worker(2), "deleted", 7); works.State(m.State) != works.Stop || len(m.Granted) != 0 {
		t.Errorf("a permit of a suspended work: %+v", m)
	}
	if m := w.end(worker(2), 2); works.State(m.State) != works.Stop || m.Bucket != 0 {
		t.Errorf("a bucket of a suspended work: %+v", m)
	}
	for _, id := range w.running() {
		w.complete(id, command.Released)
	}
	w.rest()
	if len(w.ready()) != 0 || len(w.open()) != 0 {
		t.Errorf("%v may start, %v is open", w.ready(), w.open())
	}
	w.operate(parent, task.Resume)
	w.rest()
	w.now += 1000
	for _, id := range w.ready() {
		w.start(id, "n-9")
	}
	w.plan("5f", part("all", 10, 3))
	if m := w.take(parent); m.Bucket != 1 {
		t.Errorf("%+v, want the first bucket that is not done", m)
	}
	if m := w.take(worker(2)); m.Bucket != 3 {
		t.Errorf("%+v, want the second bucket that is not done", m)
	}
}

func TestWork_SuspendedWhileItsOwnTaskSleepsWakesWhenResumed(t *testing.T) {
	w := inWork(t, 2, 2, task.Policy{})
	w.end(parent, 1)
	w.complete(parent, command.Snoozed)
	w.operate(parent, task.Suspend)
	w.end(worker(2), 2)
	w.complete(worker(2), command.Succeeded)
	w.rest()
	if len(w.ready()) != 0 {
		t.Fatalf("%v may start", w.ready())
	}
	w.operate(parent, task.Resume)
	w.rest()
	if got := w.ready(); !slices.Equal(got, []events.TaskID{parent}) {
		t.Errorf("%v may start, want the work's own task", got)
	}
}

func TestWork_ABucketThatFailsInEveryAttemptFailsTheWorkByItsName(t *testing.T) {
	w := inWork(t, 10, 3, task.Policy{MaxAttempts: 2})
	w.complete(worker(2), command.Failed)
	if m := w.end(worker(3), 3); m.Bucket != 2 {
		t.Fatalf("%+v", m)
	}
	w.complete(worker(3), command.Failed)
	w.rest()
	got := w.task(parent)
	if got.Status != task.Failure || got.Error.Code != events.CodeItems || got.Error.Properties["bucket"] != "2" || got.Error.Properties["partition"] != "all" {
		t.Fatalf("the work is %s with %+v", got.Status, got.Error)
	}
	if len(w.open()) != 0 || w.work().Active() != 0 {
		t.Errorf("%v is open, %d workers go on", w.open(), w.work().Active())
	}
	if !slices.Contains(w.stopped, parent) {
		t.Error("the attempt of the work's own task goes on")
	}
	w.operate(parent, task.Retry)
	w.start(parent, "n-1")
	if m := w.plan("5f", part("all", 10, 3)); works.State(m.State) == works.Stop {
		t.Fatalf("%+v", m)
	}
	if m := w.take(parent); m.Bucket != 1 {
		t.Errorf("a retry goes on with %+v, want the first bucket that is not done", m)
	}
	if p, _ := w.work().Part(); p.Done != 1 {
		t.Errorf("%d buckets are done, want what was done before", p.Done)
	}
}

func TestWork_LossesCountAnewWhenABucketEnds(t *testing.T) {
	w := inWork(t, 1000, 2, task.Policy{MaxLost: 2})
	bucket := uint64(2)
	for range 10 {
		m := w.end(worker(2), bucket)
		w.lose("n-2")
		w.now += 3_600_000
		w.start(worker(2), "n-2")
		bucket = w.take(worker(2)).Bucket
		if m.Bucket != bucket {
			t.Fatalf("bucket %d after %d", bucket, m.Bucket)
		}
	}
	w.end(worker(2), bucket)
	w.lose("n-2")
	w.now += 3_600_000
	if w.task(worker(2)).Final() {
		t.Fatal("lost once since its last bucket, it has ended")
	}
	w.start(worker(2), "n-2")
	w.lose("n-2")
	if got := w.task(worker(2)); !got.Final() || got.Error.Code != events.CodeLost {
		t.Errorf("lost twice without a bucket, it is %+v", got)
	}
}

func TestPermits_AtTheLimitNPassAndTheNextFailsTheWork(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "deleted", Limit: 3}}
	})
	if m := w.permit(parent, "deleted", 1, 2); m.Granted[0] != 3 {
		t.Fatalf("%+v", m)
	}
	if m := w.permit(parent, "deleted", 2); m.Granted[0] != 1 {
		t.Fatalf("the same item again: %+v", m)
	}
	if m := w.permit(worker(2), "deleted", 2); m.Granted[0] != 1 {
		t.Fatalf("an item of another bucket: %+v", m)
	}
	if p, _ := w.work().Part(); p.Counters[0] != 3 {
		t.Fatalf("%d are counted, want 3", p.Counters[0])
	}
	if m := w.permit(worker(2), "deleted", 2, 9); m.Granted[0] != 1 || works.State(m.State) != works.Stop {
		t.Fatalf("the one behind the limit: %+v", m)
	}
	got := w.task(parent)
	if got.Status != task.Failure || got.Error.Code != events.CodeThreshold || got.Error.Properties["counter"] != "deleted" {
		t.Fatalf("the work is %s with %+v", got.Status, got.Error)
	}
	if !w.task(worker(2)).Cancelled || !slices.Contains(w.stopped, parent) {
		t.Error("the workers go on")
	}
	w.complete(worker(2), command.Released)
	w.operate(parent, task.Retry)
	w.start(parent, "n-1")
	w.plan("5f", part("all", 10, 2))
	w.take(parent)
	if m := w.permit(parent, "deleted", 99); m.Granted[0] != 0 || works.State(m.State) != works.Stop {
		t.Fatalf("resumed without a reset: %+v", m)
	}
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetThresholds)})
	w.operate(parent, task.Retry)
	w.start(parent, "n-1")
	w.plan("5f", part("all", 10, 2))
	w.take(parent)
	if m := w.permit(parent, "deleted", 99); m.Granted[0] != 1 {
		t.Errorf("after a reset: %+v", m)
	}
}

func TestReset_OfThresholdsLetsAsManyNewItemsOfAnOpenBucketPass(t *testing.T) {
	const items, limit = 20, 9
	w := inWork(t, 1, 1, task.Policy{}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "deleted", Limit: limit}}
	})
	for _, want := range []int{limit, 2 * limit, items} {
		passed := 0
		for item := range uint64(items) {
			m := w.permit(parent, "deleted", item)
			if works.State(m.State) == works.Stop {
				break
			}
			passed++
		}
		if passed != want {
			t.Fatalf("%d items of the bucket pass, want %d", passed, want)
		}
		if passed == items {
			break
		}
		if is := w.task(parent); !is.Final() || is.Error == nil || is.Error.Code != events.CodeThreshold {
			t.Fatalf("%+v, want the code %s", is.Error, events.CodeThreshold)
		}
		w.must(&works.Reset{Task: string(parent), What: int64(events.ResetThresholds)})
		w.operate(parent, task.Retry)
		w.start(parent, "n-1")
		w.plan("5f", part("all", 1, 1))
		w.take(parent)
	}
	if p, _ := w.work().Part(); p.Counters[0] != items-2*limit {
		t.Errorf("%d are counted since the last reset, want %d", p.Counters[0], items-2*limit)
	}
}

func TestPermits_OfAnItemThatIsProcessedAgainAfterALossCountOnce(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{}, func(p *events.WorkPartition) {
		p.Thresholds = []events.WorkThreshold{{Counter: "deleted", Limit: 2}}
		p.Mode = events.ModeSimulate
	})
	w.permit(worker(2), "deleted", 7)
	w.lose("n-2")
	w.takeOver()
	if m := w.end(parent, 1); m.Bucket != 2 {
		t.Fatalf("%+v", m)
	}
	if m := w.permit(parent, "deleted", 7); m.Granted[0] != 1 {
		t.Fatalf("%+v", m)
	}
	if p, _ := w.work().Part(); p.Counters[0] != 1 {
		t.Errorf("%d are counted, want 1", p.Counters[0])
	}
	w.end(parent, 2)
	if w.work().Permits() != 0 {
		t.Errorf("%d permits of a bucket that has ended are kept", w.work().Permits())
	}
}

func TestPlan_GoesOnAfterAFailureAndBeginsAnewAfterASuccess(t *testing.T) {
	w := inWork(t, 3, 1, task.Policy{MaxAttempts: 5})
	w.end(parent, 1)
	w.complete(parent, command.Failed)
	w.now += 3_600_000
	w.start(parent, "n-1")
	m := w.plan("another", part("other", 99, 1))
	if !m.Differs {
		t.Error("another definition is not told")
	}
	if m := w.take(parent); m.Bucket != 2 {
		t.Fatalf("%+v", m)
	}
	w.end(parent, 2)
	w.end(parent, 3)
	w.complete(parent, command.Released) // before it could report its success
	w.now += 1000
	w.start(parent, "n-1")
	if m := w.plan("5f", part("all", 3, 1)); works.State(m.State) != works.Over {
		t.Fatalf("%+v", m)
	}
	w.complete(parent, command.Succeeded)
	w.operate(parent, task.Retry)
	w.start(parent, "n-1")
	if m := w.plan("another", part("other", 99, 1)); works.State(m.State) != works.Next || m.Run != 2 || m.Differs {
		t.Fatalf("%+v", m)
	}
	if s := w.show(); s.Parts[0].ID != "other" || s.Definition != "another" || s.Parts[0].Done != 0 {
		t.Errorf("%+v", s)
	}
}

func TestRerun_AfterAResetSaysThatTheRunWasReset(t *testing.T) {
	w := inWork(t, 1, 1, task.Policy{})
	w.move(parent, works.Bucket{Ended: 1, Failed: 1, Want: true})
	w.complete(parent, command.Succeeded)
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetAll)})
	a := w.decide(&works.Rerun{Task: string(parent)})
	if a.Code != command.AnswerState || !strings.Contains(a.Text, "the run was reset") {
		t.Errorf("%d %s", a.Code, a.Text)
	}
}

func TestRerun_HasTheBucketsWithFailedItemsAlone(t *testing.T) {
	w := inWork(t, 9, 1, task.Policy{})
	for bucket := uint64(1); bucket <= 9; bucket++ {
		c := works.Bucket{Ended: bucket, Done: 2, Want: true}
		if bucket == 3 || bucket == 4 || bucket == 8 {
			c.Failed = 1
		}
		w.move(parent, c)
		if bucket == 5 {
			if a := w.decide(&works.Rerun{Task: string(parent)}); a.Code != command.AnswerState {
				t.Fatalf("while it runs: %d %s", a.Code, a.Text)
			}
		}
	}
	w.complete(parent, command.Succeeded)
	w.must(&works.Rerun{Task: string(parent)})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 9, 1))
	w.begin(1)
	var buckets []uint64
	for m := w.take(parent); works.State(m.State) == works.Go; m = w.end(parent, m.Bucket) {
		buckets = append(buckets, m.Bucket)
	}
	if !slices.Equal(buckets, []uint64{3, 4, 8}) {
		t.Errorf("buckets %v, want 3, 4 and 8", buckets)
	}
	w.complete(parent, command.Succeeded)
	if a := w.decide(&works.Rerun{Task: string(parent)}); a.Code != command.AnswerState || !strings.Contains(a.Text, "no bucket had failed items") {
		t.Errorf("answer %d %s", a.Code, a.Text)
	}
}

func TestRerun_OfAWorkThatRepeatsIsItsNextRun(t *testing.T) {
	w := inWork(t, 3, 1, task.Policy{Every: time.Hour})
	for bucket := uint64(1); bucket <= 3; bucket++ {
		c := works.Bucket{Ended: bucket, Done: 2, Want: true}
		if bucket == 2 {
			c.Failed = 1
		}
		w.move(parent, c)
	}
	w.complete(parent, command.Succeeded)
	if w.task(parent).Final() {
		t.Fatal("it does not repeat")
	}
	w.must(&works.Rerun{Task: string(parent)})
	w.start(parent, "n-1")
	if m := w.plan("5f", part("all", 3, 1)); m.Run != 2 {
		t.Fatalf("run %d of the work, want 2", m.Run)
	}
	if a := w.decide(&works.Rerun{Task: string(parent)}); a.Code != command.AnswerState {
		t.Errorf("while it runs: %d %s", a.Code, a.Text)
	}
	w.begin(1)
	if m := w.take(parent); m.Bucket != 2 {
		t.Errorf("bucket %d, want the one with a failed item, 2", m.Bucket)
	}
	if m := w.end(parent, 2); works.State(m.State) != works.Over {
		t.Errorf("%+v behind the buckets with failed items", m)
	}
	w.complete(parent, command.Succeeded)
	w.now += events.Millis(time.Hour / time.Millisecond)
	w.start(parent, "n-1")
	if m := w.plan("5f", part("all", 3, 1)); m.Run != 3 || w.work().Retried {
		t.Errorf("run %d of the work, of failed buckets alone %t, want 3 with all buckets", m.Run, w.work().Retried)
	}
}

func TestReset_ForgetsBucketsAndCounters(t *testing.T) {
	w := inWork(t, 9, 1, task.Policy{MaxAttempts: 1})
	w.end(parent, 1)
	if a := w.decide(&works.Reset{Task: string(parent), What: int64(events.ResetAll)}); a.Code != command.AnswerState {
		t.Fatalf("while it runs: %d %s", a.Code, a.Text)
	}
	w.complete(parent, command.Failed)
	if a := w.decide(&works.Reset{Task: string(parent), What: int64(events.ResetAll), Seen: 5}); a.Code != command.AnswerChanged {
		t.Fatalf("of another version: %d %s", a.Code, a.Text)
	}
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetAll)})
	w.operate(parent, task.Retry)
	w.start(parent, "n-1")
	if m := w.plan("other", part("other", 7, 1)); m.Partition != 1 || works.State(m.State) != works.Next {
		t.Fatalf("%+v", m)
	}
	w.begin(1)
	if m := w.take(parent); m.Bucket != 1 {
		t.Errorf("%+v", m)
	}
}

func TestReset_WakesTheTaskThatWaitedForWorkers(t *testing.T) {
	w := inWork(t, 2, 2, task.Policy{})
	w.end(parent, 1)
	w.complete(parent, command.Snoozed)
	w.lose("n-2")
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetAll)})
	w.rest()
	if !slices.Contains(w.ready(), parent) {
		t.Errorf("%v may start, want the work's own task, which plans a run", w.ready())
	}
}

func TestWork_AnOwnerThatTakesOverGoesOnWithWhatWasLeft(t *testing.T) {
	w := newWorld(t)
	w.budget = 1
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 100, 20))
	w.begin(1)
	w.budget = 64
	w.takeOver()
	w.now++
	w.rest()
	if w.state.Len() != 20 {
		t.Errorf("%d tasks, want 20", w.state.Len())
	}
}

func TestWork_WithoutRoomForWorkersIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	w.plan("5f", part("all", 100, 3))
	w.room.Refusal = "the store is almost full"
	w.begin(1)
	if w.state.Len() != 1 {
		t.Fatalf("%d tasks", w.state.Len())
	}
	w.room.Refusal = ""
	w.now += 2000
	w.rest()
	if w.state.Len() != 3 {
		t.Errorf("%d tasks, want 3", w.state.Len())
	}
}

func TestPlan_BreaksNoLimit(t *testing.T) {
	good := part("all", 1, 1)
	for want, change := range map[string]func(*works.Plan, *events.WorkPartition){
		"workers: 257":                 func(_ *works.Plan, p *events.WorkPartition) { p.Workers = 257 },
		"threads: 257":                 func(_ *works.Plan, p *events.WorkPartition) { p.Threads = 257 },
		"buckets: 1000000001":          func(_ *works.Plan, p *events.WorkPartition) { p.Buckets = 1e9 + 1 },
		"segments: 196609 bytes":       func(_ *works.Plan, p *events.WorkPartition) { p.Segments = make([]byte, 192<<10+1) },
		"id of a work":                 func(c *works.Plan, _ *events.WorkPartition) { c.Task = strings.Repeat("i", 97) },
		"partitions":                   func(c *works.Plan, _ *events.WorkPartition) { c.Partitions = []byte{1} },
		"a task that this one is a wo": func(c *works.Plan, _ *events.WorkPartition) { c.Parent = "b" },
	} {
		p := good
		c := &works.Plan{Task: "a"}
		change(c, &p)
		if c.Partitions == nil {
			c.Partitions = works.EncodePartitions([]events.WorkPartition{p})
		}
		if err := command.Check(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestExplain_SaysThatTheWorkWaitsForItsWorkers(t *testing.T) {
	w := inWork(t, 2, 2, task.Policy{})
	if _, waits := w.Explain(w.task(parent)); waits {
		t.Error("a work that runs waits")
	}
	w.end(parent, 1)
	w.complete(parent, command.Snoozed)
	expect := func(want string) {
		t.Helper()
		if e, waits := w.Explain(w.task(parent)); !waits || e.Why != task.WhyWorkers || e.Text != want {
			t.Errorf("%+v, %t", e, waits)
		}
	}
	expect("it waits for its workers: no bucket is free, and they have 1 bucket")
	w.lose("n-2")
	expect("it waits for its workers: none has one of 1 free bucket yet")
}

func TestBeside_CountsTheWorkersOfTheWorkByNode(t *testing.T) {
	w := inWork(t, 10, 3, task.Policy{})
	if got := w.Beside(w.task(worker(3))); len(got) != 3 || got["n-1"] != 1 || got["n-2"] != 1 || got["n-3"] != 1 {
		t.Errorf("%v", got)
	}
	w.complete(worker(2), command.Snoozed)
	if got := w.Beside(w.task(worker(2))); len(got) != 2 {
		t.Errorf("%v", got)
	}
	policy, _ := task.Policy{}.Complete()
	w.must(&command.Submit{Task: "b", Behavior: "work", Policy: policy, NotBefore: w.now})
	if got := w.Beside(w.task("b")); got != nil {
		t.Errorf("a task without a work is kept apart from %v", got)
	}
}

func TestWork_WhoseRetryIsTakenAwayReturnsAllBucketsInTheSameEntry(t *testing.T) {
	w := inWork(t, 10, 3, task.Policy{})
	w.complete(parent, command.Failed) // to be tried again
	w.operate(parent, task.Cancel)
	if !w.task(parent).Final() || len(w.open()) != 0 {
		t.Errorf("the work is %s, %v is open", w.task(parent).Phase(), w.open())
	}
	if !w.task(worker(2)).Cancelled || !w.task(worker(3)).Cancelled {
		t.Error("its workers go on")
	}
}

func TestWork_ABucketThatANodeKeptFromBeingReturnedIsFreeOnceThatNodeIsGone(t *testing.T) {
	old := store.NodeInfo{Reads: store.Reads{Kind: events.KindScheduleDefined}}
	leave := func() *world {
		w := inWork(t, 10, 2, task.Policy{})
		w.members = &store.Membership{Nodes: map[string]store.NodeInfo{"old": old}}
		w.complete(worker(2), command.Released)
		w.wantOpen(map[uint32]uint64{1: 1, 2: 2})
		return w
	}
	w := leave()
	w.members = nil
	w.now += 2000
	w.rest()
	w.wantOpen(map[uint32]uint64{1: 1})

	w = leave()
	w.now += 100
	w.start(worker(2), "n-3")
	w.members = nil
	if m := w.take(worker(2)); m.Bucket != 2 || works.State(m.State) != works.Go {
		t.Errorf("%+v", m)
	}
	if o := w.work().Has(2); o == nil || o.Attempt != w.task(worker(2)).Started {
		t.Errorf("the bucket is %+v, want one of the new attempt", o)
	}
}
