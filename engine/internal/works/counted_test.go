package works_test

import (
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/works"
	"taskledger/events"
	"taskledger/task"
	"taskledger/work/progress"
	"taskledger/work/workledger"
)

func TestReport_ARuleThatStopsAtTheFirstFailureHasItsCountAndLimit(t *testing.T) {
	for _, limit := range []uint64{0, 2} {
		w := inWork(t, 10, 1, task.Policy{}, func(p *events.WorkPartition) {
			p.Thresholds = []events.WorkThreshold{{Counter: workledger.FailuresPrefix + "1", Limit: limit}}
		})
		want := progress.Threshold{Counter: "failures:1", Mode: "full", Limit: limit + 1}
		if got := w.report().Partitions[0].Thresholds[0]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		for item := range limit + 1 {
			w.permit(parent, "failures:1", item)
		}
		want.Count, want.Tripped = limit+1, true
		if got := w.report().Partitions[0].Thresholds[0]; got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestReport_WallClockEndsWithTheLastSignOfLifeOfWhatIsLost(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{})
	begun := w.report().WallClockMs
	w.now += 5000
	w.end(worker(2), 2)
	w.now += 3_600_000 // no node is alive
	w.turn(func(d *command.Decider) {
		for _, node := range []string{"n-1", "n-2"} {
			if !d.Lose(node) {
				t.Fatal("the entry is full")
			}
		}
	})
	if got := w.report().WallClockMs - begun; got != 5000 {
		t.Errorf("%d ms, want 5000", got)
	}
	w.now += 60_000
	w.rest()
	w.start(parent, "n-1")
	w.take(parent)
	w.now += 700
	w.lose("n-1") // which was alive when it took the bucket
	if got := w.report().WallClockMs - begun; got != 5000 {
		t.Errorf("%d ms, want 5000", got)
	}
}

func TestReport_WallClockGoesOnWhileOneOfTheAttemptsIsLost(t *testing.T) {
	w := inWork(t, 10, 2, task.Policy{})
	begun := w.report().WallClockMs
	w.now += 5000
	w.lose("n-2")
	w.now += 2000
	w.end(parent, 1)
	if got := w.report().WallClockMs - begun; got != 7000 {
		t.Errorf("%d ms, want 7000", got)
	}
}

func TestReset_OfThresholdsLeavesWhatEndedPartitionsHaveCounted(t *testing.T) {
	w := newWorld(t)
	w.submit(task.Policy{})
	w.start(parent, "n-1")
	think, do := part("think", 1, 1), part("do", 1, 1)
	limit := []events.WorkThreshold{{Counter: "c", Limit: 2}}
	think.Mode, think.Thresholds, do.Thresholds = events.ModeSimulate, limit, limit
	w.plan("5f", think, do)
	w.begin(1)
	w.take(parent)
	w.permit(parent, "c", 1, 2)
	w.end(parent, 1)
	w.begin(2)
	w.take(parent)
	w.permit(parent, "c", 1, 2, 3)
	w.wantFailed(events.CodeThreshold)
	w.must(&works.Reset{Task: string(parent), What: int64(events.ResetThresholds)})
	r := w.report()
	if is := r.Partitions[0].Thresholds[0].Count; is != 2 {
		t.Errorf("the ended partition has counted %d, want 2", is)
	}
	if is := r.Partitions[1].Thresholds[0].Count; is != 0 {
		t.Errorf("the other one has counted %d, want 0", is)
	}
}

func TestPlan_RunsOfAWorkAreNumberedWithoutGaps(t *testing.T) {
	w := inWork(t, 1, 1, task.Policy{MaxAttempts: 1})
	w.complete(parent, command.Failed)
	for run := int64(1); run <= 3; run++ {
		if run > 1 {
			w.complete(parent, command.Failed) // the task's run ends, that of the work goes on
		}
		w.operate(parent, task.Retry)
		w.start(parent, "n-1")
		if m := w.plan("5f", part("all", 1, 1)); m.Run != run {
			t.Fatalf("run %d, want %d", m.Run, run)
		}
		if run > 1 {
			w.begin(1)
		}
		w.take(parent)
		w.end(parent, 1)
		w.complete(parent, command.Succeeded)
		w.operate(parent, task.Retry)
		w.start(parent, "n-1")
		w.plan("5f", part("all", 1, 1))
	}
}
