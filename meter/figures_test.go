package meter_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/meter"
)

func TestNames_AreDifferentAndPrometheus(t *testing.T) {
	seen := map[string]bool{}
	check := func(d meter.Description, counts bool) {
		if d.Name == "" || d.Help == "" || seen[d.Name] || strings.HasSuffix(d.Name, "_total") != counts {
			t.Errorf("%+v", d)
		}
		seen[d.Name] = true
	}
	for _, d := range meter.Counters {
		check(d, true)
	}
	for _, d := range meter.Histograms {
		check(d, false)
		for i := range d.Bounds {
			if i > 0 && d.Bounds[i] <= d.Bounds[i-1] {
				t.Errorf("%s: bound %v after %v", d.Name, d.Bounds[i], d.Bounds[i-1])
			}
		}
	}
	for _, d := range meter.Gauges {
		check(d, false)
	}
	for i, d := range meter.Counters {
		if d.ByBehavior != (meter.Counter(i) < meter.TaskCounters) {
			t.Errorf("%s: figures hold what is by behavior, and nothing else", d.Name)
		}
	}
	for i, d := range meter.Histograms {
		if d.ByBehavior != (meter.Histogram(i) < meter.TaskHistograms) {
			t.Errorf("%s: figures hold what is by behavior, and nothing else", d.Name)
		}
	}
}

func TestOther_IsNoBehavior(t *testing.T) {
	if events.ValidateBehavior(meter.Other) == nil {
		t.Error("a behavior may have the id of what stands for several")
	}
}

func TestQuantile_IsWithinTheBucketOfTheTime(t *testing.T) {
	bounds := meter.Histograms[meter.Duration].Bounds
	rapid.Check(t, func(t *rapid.T) {
		var d meter.Distribution
		ms := rapid.Int64Range(0, 4_000_000).Draw(t, "ms")
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			d.Add(ms)
		}
		got := d.Quantile(rapid.Float64Range(0, 1).Draw(t, "q")).Seconds()
		low, high := 0.0, bounds[len(bounds)-1]
		for i := len(bounds) - 1; i >= 0; i-- {
			if float64(ms)/1000 <= bounds[i] {
				high = bounds[i]
			} else {
				low = max(low, bounds[i])
			}
		}
		if got < low || got > high {
			t.Fatalf("%d ms: %v s, want %v to %v", ms, got, low, high)
		}
	})
}

func TestQuantile_OrdersWhatItCounts(t *testing.T) {
	var d meter.Distribution
	if d.Quantile(0.5) != 0 {
		t.Error("of no times there is a median")
	}
	for range 98 {
		d.Add(2)
	}
	d.Add(50_000)
	d.Add(50_000)
	if p50, p99 := d.Quantile(0.5), d.Quantile(0.99); p50 > 3*time.Millisecond || p99 < 30*time.Second {
		t.Errorf("p50 %s, p99 %s", p50, p99)
	}
}

// anyFigures draws figures of some behaviors.
func anyFigures(t *rapid.T, label string) []meter.Figures {
	ids := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", meter.Other}), 0, 4, rapid.ID[string]).Draw(t, label)
	all := make([]meter.Figures, len(ids))
	for i := range all {
		all[i].Behavior = ids[i]
		for c := range all[i].Counts {
			all[i].Counts[c] = rapid.Int64Range(0, 1<<50).Draw(t, "count")
		}
		for h := range all[i].Times {
			for range rapid.IntRange(0, 3).Draw(t, "times") {
				all[i].Times[h].Add(rapid.Int64Range(0, 1e7).Draw(t, "ms"))
			}
		}
	}
	return all
}

func TestPack_IsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := anyFigures(t, "behaviors")
		got, err := meter.Unpack(meter.Pack(all))
		if err != nil || len(got) != len(all) || len(all) > 0 && !reflect.DeepEqual(got, all) {
			t.Fatalf("%v, %v; want %v", got, err, all)
		}
	})
}

// However long the times are, their sum is one that whoever is told takes.
func TestDistribution_KeepsASumThatIsTaken(t *testing.T) {
	for _, times := range [][]int64{{1 << 53, 1}, {1<<53 - 1, 1, 1}, {1 << 62, 1 << 62, 1 << 62}, {math.MaxInt64, math.MaxInt64}} {
		f := meter.Figures{Behavior: "work"}
		for _, ms := range times {
			f.Times[0].Add(ms)
		}
		all, err := meter.Unpack(meter.Pack([]meter.Figures{f}))
		if err != nil || all[0].Times[0].SumMs != 1<<53 || all[0].Times[0].N() != int64(len(times)) {
			t.Errorf("%v: %+v, %v", times, all, err)
		}
	}
}

func TestSum_AddsUpByBehaviorInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one, two := anyFigures(t, "one"), anyFigures(t, "two")
		sum := meter.Sum(one, two)
		for i := range sum {
			if i > 0 && sum[i].Behavior <= sum[i-1].Behavior {
				t.Fatalf("%s after %s", sum[i].Behavior, sum[i-1].Behavior)
			}
			var created, n int64
			for _, f := range append(append([]meter.Figures(nil), one...), two...) {
				if f.Behavior == sum[i].Behavior {
					created += f.Counts[meter.TasksCreated]
					n += f.Times[meter.Wait].N()
				}
			}
			if sum[i].Counts[meter.TasksCreated] != created || sum[i].Times[meter.Wait].N() != n {
				t.Fatalf("%s: %d created, %d waits; want %d, %d", sum[i].Behavior, sum[i].Counts[meter.TasksCreated], sum[i].Times[meter.Wait].N(), created, n)
			}
		}
	})
}
