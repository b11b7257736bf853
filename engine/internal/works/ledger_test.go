package works_test

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"sync"
	"testing"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
	"taskledger/work/workledger"
)

// ledger returns the ledger of the attempt of a task that runs.
func (w *world) ledger(id events.TaskID) *works.Ledger {
	w.t.Helper()
	name, started, node := w.attempt(id)
	a := works.Attempt{Task: events.TaskID(name), Started: events.Ref(started), Node: node}
	if id != parent {
		a.Parent = parent
	}
	return works.NewLedger(works.Asks{
		Ask: func(_ context.Context, _ int, c command.Command) (command.Answer, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.decide(c), nil
		},
		Read: func(_ context.Context, _ int, c command.Command) (command.Answer, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			found, is := w.Answer(c, w.now, command.Budget{})
			if !is {
				return command.Answer{}, errors.New("no answer")
			}
			return found.Answer(), nil
		},
		Shards: 1,
	}, a)
}

// numbers is a work over the numbers below 100, in ten buckets.
func numbers(workers int64, process func(ctx context.Context, n int64) error, thresholds ...workledger.Threshold) *work.Work[struct{}, int64] {
	return work.Define("numbers", nil, work.Partition[struct{}, int64]{
		ID: "all",
		Items: func(_ context.Context, _ struct{}, b work.Bucket) iter.Seq2[int64, error] {
			return func(yield func(int64, error) bool) {
				for n := b.From; n < b.To && yield(n, nil); n++ {
				}
			}
		},
		Count:        func(context.Context, struct{}) (int64, error) { return 100, nil },
		Process:      process,
		Segmentation: segmentation.Plan{Kind: segmentation.Numeric, To: 100, Buckets: 10},
		Workers:      workers,
		Threads:      3,
		Thresholds:   thresholds,
	})
}

func TestLedger_AnAttemptProcessesEveryItemOnce(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	var mu sync.Mutex
	seen := map[int64]int{}
	def := numbers(1, func(_ context.Context, n int64) error {
		mu.Lock()
		defer mu.Unlock()
		seen[n]++
		switch {
		case n == 7:
			return errors.New("no seven")
		case n%50 == 0:
			return work.Skip("half")
		}
		return nil
	})
	state, err := def.Attempt(t.Context(), w.ledger(parent), struct{}{}, work.Attempt{Number: 1})
	if state != workledger.Finished || err != nil {
		t.Fatalf("state %d, %v", state, err)
	}
	for n := range int64(100) {
		if seen[n] != 1 {
			t.Errorf("item %d was processed %d times", n, seen[n])
		}
	}
	p := w.show().Parts[0]
	if p.Done != 10 || p.ItemsDone != 97 || p.ItemsFailed != 1 || p.ItemsSkipped != 2 || p.Expected != 100 || p.FailedBuckets != 1 {
		t.Errorf("%+v", p)
	}
}

func TestLedger_WorkersShareTheBuckets(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	def := numbers(2, func(context.Context, int64) error { return nil })
	l := w.ledger(parent)
	if _, err := l.Open(t.Context(), def.Planned()); err != nil {
		t.Fatal(err)
	}
	if a, err := l.Next(t.Context(), workledger.Report{}); err != nil || a.State != workledger.Starting || a.Partition != 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	if err := l.Begin(t.Context(), workledger.Beginning{Counted: true, Expected: 5}); err != nil {
		t.Fatal(err)
	}
	if a, err := l.Next(t.Context(), workledger.Report{}); err != nil || a.State != workledger.Working || a.Bucket != 1 {
		t.Fatalf("%+v, %v", a, err)
	}
	w.rest()
	w.start(worker(2), "n-2")
	state, err := def.Attempt(t.Context(), w.ledger(worker(2)), struct{}{}, work.Attempt{Number: 1})
	if state != workledger.Waiting || err != nil {
		t.Fatalf("the worker: state %d, %v", state, err)
	}
	a, err := l.Next(t.Context(), workledger.Report{Bucket: 1, Items: workledger.Counts{Done: 10}})
	if err != nil || a.State != workledger.Finished {
		t.Fatalf("%+v, %v", a, err)
	}
	if p := w.show().Parts[0]; p.Done != 10 || p.ItemsDone != 100 {
		t.Errorf("%+v", p)
	}
}

func TestLedger_AThresholdStopsTheAttemptAndFailsTheWork(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	var mu sync.Mutex
	applied := 0
	def := numbers(1, func(ctx context.Context, _ int64) error {
		if err := work.Permit(ctx, "deleted"); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		applied++
		return nil
	}, workledger.Threshold{Counter: "deleted", Limit: 42})
	_, err := def.Attempt(t.Context(), w.ledger(parent), struct{}{}, work.Attempt{Number: 1})
	if err == nil || applied != 42 {
		t.Errorf("%d were applied, %v", applied, err)
	}
	if got := w.task(parent); got.Status != task.Failure || got.Error.Code != events.CodeThreshold {
		t.Errorf("the work is %s with %+v", got.Status, got.Error)
	}
}

func TestLedger_OfAnAttemptThatIsOverSaysSo(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	l := w.ledger(parent)
	w.lose("n-1")
	if _, err := l.Open(t.Context(), numbers(1, nil).Planned()); !errors.Is(err, workledger.ErrOver) {
		t.Errorf("%v", err)
	}
}

func TestLedger_OfASuspendedWorkStopsTheAttempt(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{})
	w.operate(parent, task.Suspend)
	l := w.ledger(worker(2))
	if _, err := l.Open(t.Context(), workledger.Plan{}); err != nil {
		t.Fatal(err)
	}
	if a, err := l.Next(t.Context(), workledger.Report{}); err != nil || a.State != workledger.Stopped {
		t.Errorf("%+v, %v", a, err)
	}
	if permitted, err := l.Permit(t.Context(), workledger.Ask{Counter: "c"}); permitted || !errors.Is(err, workledger.ErrOver) {
		t.Errorf("a permit of a suspended work is told %t, %v: no counter is at its limit", permitted, err)
	}
}

func TestLedger_APermitWhileTheWorkIsSuspendedIsNoTrip(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	def := numbers(1, func(ctx context.Context, n int64) error {
		if n == 3 {
			w.mu.Lock()
			w.operate(parent, task.Suspend)
			w.mu.Unlock()
		}
		return work.Permit(ctx, "deleted")
	}, workledger.Threshold{Counter: "deleted", Limit: 42})
	_, err := def.Attempt(t.Context(), w.ledger(parent), struct{}{}, work.Attempt{Number: 1})
	if trip, is := errors.AsType[*work.ThresholdError](err); is || !errors.Is(err, workledger.ErrOver) {
		t.Errorf("the attempt fails with %v, %+v", err, trip)
	}
}

func TestLedger_RecordsEverySegmentation(t *testing.T) {
	for _, p := range []segmentation.Plan{
		{},
		{Kind: segmentation.Numeric, From: -1 << 63, To: 1<<63 - 1, Buckets: 7},
		{Kind: segmentation.Interval, Alphabets: []string{"a-z", "0-9"}, Depth: 2},
		{Kind: segmentation.OID, Depth: 3},
		{Kind: segmentation.Explicit, Explicit: []segmentation.Content{
			{Kind: segmentation.Interval, Lower: "\xff", Upper: "\xff\xff"},
			{Kind: segmentation.Exact, Text: "\x00\xfe"},
		}},
	} {
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		rules := []workledger.Rule{}
		switch p.Kind {
		case segmentation.OID:
			rules = nil
		case segmentation.Explicit:
			rules = append(rules, workledger.Rule{Code: "\xff", React: 2, Times: 3, Backoff: time.Minute}, workledger.Rule{React: 1})
		}
		w := newWorld(t)
		w.submit(task.Policy{})
		w.start(parent, "n-1")
		plan := workledger.Plan{Definition: "d", Partitions: []workledger.PartitionPlan{{
			ID:           "p",
			Mode:         workledger.Simulate,
			Segmentation: p,
			Buckets:      p.Total(),
			Workers:      3,
			Threads:      2,
			Thresholds:   []workledger.Threshold{{Counter: "c", Limit: 9}},
			Rules:        rules,
		}}}
		opened, err := w.ledger(parent).Open(t.Context(), plan)
		if err != nil || !reflect.DeepEqual(opened.Plan, plan) || opened.Run != 1 || events.MillisOf(opened.Started) != w.now {
			t.Errorf("%+v, %v, want %+v", opened, err, plan)
		}
	}
}
