package shard_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/message"
	"taskledger/meter"
)

// figures implements meter.Meter: how much was counted, by name.
type figures map[string]int64

// Count implements meter.Meter.
func (f figures) Count(c meter.Counter, behavior string, n int64) {
	f[meter.Counters[c].Name+" "+behavior] += n
}

// Observe implements meter.Meter.
func (f figures) Observe(h meter.Histogram, behavior string, values []float64) {
	f[meter.Histograms[h].Name+" "+behavior] += int64(len(values))
}

// Set implements meter.Meter.
func (figures) Set(meter.Gauge, string, float64) {}

// infoTold returns the figures that the owner reports of itself, and since which entry.
func (b *fixture) infoTold() (all []meter.Figures, began uint64) {
	b.Helper()
	s := b.report()
	all, err := meter.Unpack(s.Behaviors, s.Figures)
	if err != nil {
		b.Fatal(err)
	}
	return all, s.Began
}

// measured returns a bench whose owner tells a meter.
func measured(t *testing.T) (*fixture, figures) {
	b, f := newFixture(t), figures{}
	b.cfg.Meter = f
	b.takeOver()
	return b, f
}

func TestFigures_CountWhatIsCommittedAndOnce(t *testing.T) {
	b, f := measured(t)
	b.store.refuse = errors.New("unplugged")
	b.deliver(b.next("somebody", command.LaneSubmit, submitOf(events.Policy{})))
	if err := b.own.Turn(b.Context()); err == nil {
		t.Fatal("nothing was refused")
	}
	if len(f) > 0 {
		t.Errorf("counted before the commit: %v", f)
	}
	b.store.refuse = nil
	b.takeOver()
	b.submit(events.Policy{})
	_, task := b.assign()
	b.time += 40
	b.accept(command.LaneWork, report(task, command.Failed))
	b.takeOver()
	b.turn()
	if want := (figures{"tasks_created_total work": 1, "attempts_started_total work": 1, "lateness_seconds work": 1, "wait_seconds work": 1, "failures_total work": 1,
		"failures_final_total work": 1, "attempt_duration_seconds work": 1, "commit_latency_seconds ": int64(b.sealed()), "entry_events ": int64(b.sealed())}); !maps.Equal(f, want) {
		t.Errorf("counted %v, want %v", f, want)
	}
	if told, began := b.infoTold(); len(told) > 0 || began != uint64(b.sealed())+1 {
		t.Errorf("an owner that has committed nothing tells of %v, since entry %d", told, began)
	}
}

func TestFigures_OfAnOwnerTellCountsAndTimes(t *testing.T) {
	b, _ := measured(t)
	b.submit(events.Policy{})
	b.time += 60_000 // far more than passes meanwhile
	_, task := b.assign()
	b.time += 90_000
	b.accept(command.LaneWork, report(task, command.Succeeded))
	if a := b.ask(command.LaneWork, report(task, command.Succeeded)); a.Code != command.AnswerStale {
		t.Fatalf("second outcome: answer %d", a.Code)
	}
	told, began := b.infoTold()
	if len(told) != 1 || began != 1 {
		t.Fatalf("told %v, since entry %d", told, began)
	}
	f := told[0]
	if f.Behavior != benchBehavior || f.Counts[meter.AttemptsSucceeded] != 1 || f.Times[meter.Lateness].SumMs != 60_000 || f.Times[meter.Wait].SumMs != 60_000 ||
		f.Times[meter.Duration].SumMs != 90_000 {
		t.Errorf("told %+v", f)
	}
}

// A cancelled task that never ran has no attempt that took long, though it has failed.
func TestFigures_OfACancelledTaskHaveNoDuration(t *testing.T) {
	b, f := measured(t)
	b.submit(events.Policy{})
	b.accept(command.LaneSubmit, &command.Operate{Task: "x", Do: command.DoCancel})
	if f["failures_total work"] != 1 || f["attempt_duration_seconds work"] != 0 {
		t.Errorf("counted %v", f)
	}
}

func TestFigures_CountRefusedSubmits(t *testing.T) {
	b, f := measured(t)
	b.submit(events.Policy{})
	b.node.refusal = "the store is almost full"
	c := submitOf(events.Policy{})
	for _, behavior := range []string{benchBehavior, "made-up"} {
		c.Task, c.Behavior = events.TaskID("of-"+behavior), behavior
		if a := b.ask(command.LaneSubmit, c); a.Code != command.AnswerOverload {
			t.Fatalf("submit of %s: answer %d", behavior, a.Code)
		}
	}
	if f["submits_refused_total work"] != 1 || f["submits_refused_total "+meter.Other] != 1 {
		t.Errorf("counted %v", f)
	}
}

// What came from another node may be anything.
func TestFigures_ThatNoOwnerTellsAreRefused(t *testing.T) {
	sound := func() command.ShardReport {
		var r command.ShardReport
		r.Behaviors, r.Figures = meter.Pack([]meter.Figures{{Behavior: "work"}})
		return r
	}
	for what, c := range map[string]struct {
		want  string
		spoil func(*command.ShardReport)
	}{
		"a behavior that is none":     {"byte 0 is 'N'", func(r *command.ShardReport) { r.Behaviors[0] = "No Behavior" }},
		"a count below zero":          {"a figure is below 0 or too large", func(r *command.ShardReport) { r.Figures[0] = -1 }},
		"a count that overflows sums": {"a figure is below 0 or too large", func(r *command.ShardReport) { r.Figures[0] = 1 << 60 }},
		"numbers of no behavior":      {"numbers of 0 behaviors", func(r *command.ShardReport) { r.Behaviors = nil }},
		"a number too few":            {"numbers of 1 behaviors", func(r *command.ShardReport) { r.Figures = r.Figures[1:] }},
		"too many behaviors": {"of 102 behaviors, want 58 of each of 101 at most", func(r *command.ShardReport) {
			r.Behaviors, r.Figures = meter.Pack(make([]meter.Figures, meter.MaxBehaviors+2))
			for i := range r.Behaviors {
				r.Behaviors[i] = "work"
			}
		}},
	} {
		r := sound()
		c.spoil(&r)
		if _, err := command.ReadLenient[command.ShardReport](message.Encode(&r)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
	r := sound()
	if _, err := command.ReadLenient[command.ShardReport](message.Encode(&r)); err != nil {
		t.Error(err)
	}
}
