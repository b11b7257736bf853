package schedules_test

import (
	"maps"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/schedules"
	"taskledger/engine/internal/tally"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/task"
)

// counts is a meter that remembers.
type counts struct {
	n    map[meter.Counter]int64
	late []float64
}

func (c *counts) Count(of meter.Counter, _ string, n int64) { c.n[of] += n }

func (c *counts) Observe(of meter.Histogram, _ string, values []float64) {
	if of == meter.TickLateness {
		c.late = append(c.late, values...)
	}
}

func (c *counts) Set(meter.Gauge, string, float64) {}

// Each decision counts once, whatever it is about, and a run tells how late its tick was decided.
func TestAtOwner_CountsDecisions(t *testing.T) {
	o := newOwner(t)
	o.set("hourly", "UTC")
	o.overlap("hourly", events.OverlapForbid)
	o.rest()
	o.now += 1_800_000 + 2500
	o.rest() // the run of 10:00, which does not end
	run := o.ticked()[0].Run
	o.now += 3 * 3_600_000
	o.rest()
	o.turn(&command.Operate{Task: run, Do: task.Cancel}) // 11:00 to 13:00 are skipped in one decision
	o.rest()
	o.turn(&schedules.Steer{Name: "hourly", Verb: int64(schedules.Pause)})
	o.now += 2 * 3_600_000
	o.turn(&schedules.Steer{Name: "hourly", Verb: int64(schedules.Resume)}) // 14:00 and 15:00 are missed
	o.rest()
	to := &counts{n: map[meter.Counter]int64{}}
	counted := tally.New(to)
	for i := range o.told {
		o.Count(&o.told[i], counted)
	}
	counted.Count(0, 0)
	counted.Count(0, 0) // what is counted is not counted again
	want := map[meter.Counter]int64{meter.TicksDecided: 3, meter.TicksSkipped: 1, meter.TicksMissed: 1}
	if !maps.Equal(to.n, want) || len(to.late) != 1 || to.late[0] != 2.5 {
		t.Errorf("counted %v, late %v, want %v; decisions %+v", to.n, to.late, want, o.ticked())
	}
}
