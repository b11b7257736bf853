package meter_test

import (
	"strings"
	"testing"

	"taskledger/meter"
)

func TestVitals_SayWhatKeepsANodeFromBeingReady(t *testing.T) {
	sound := meter.Vitals{
		Readiness:    meter.Readiness{Session: "a-abcdefghij", Renewed: true, Settled: true},
		HasBus:       true,
		BusConnected: true,
	}
	if why := sound.NotReady(); why != "" || len(sound.Degraded()) > 0 {
		t.Errorf("%s, %v", why, sound.Degraded())
	}
	for want, spoil := range map[string]func(*meter.Vitals){
		"no session":                func(v *meter.Vitals) { v.Session = "" },
		"has not renewed":           func(v *meter.Vitals) { v.Renewed = false },
		"drains":                    func(v *meter.Vitals) { v.Draining = true },
		"does not serve its shards": func(v *meter.Vitals) { v.Settled = false },
	} {
		v := sound
		spoil(&v)
		if why := v.NotReady(); !strings.Contains(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
	for want, spoil := range map[string]func(*meter.Vitals){
		"NATS":                       func(v *meter.Vitals) { v.BusConnected = false },
		"refused: it is almost full": func(v *meter.Vitals) { v.Refusing = "it is almost full" },
		"1 shards are quarantined":   func(v *meter.Vitals) { v.ShardsQuarantined = 1 },
		"2 shards are not trimmed":   func(v *meter.Vitals) { v.ShardsNotTrimmed = 2 },
	} {
		v := sound
		spoil(&v)
		if why, said := v.NotReady(), strings.Join(v.Degraded(), "; "); why != "" || !strings.Contains(said, want) {
			t.Errorf("%q, %q, want ready and %q", why, said, want)
		}
	}
}

// gauges implements meter.Meter.
type gauges map[string]float64

// Count implements meter.Meter.
func (gauges) Count(meter.Counter, string, int64) {}

// Observe implements meter.Meter.
func (gauges) Observe(meter.Histogram, string, []float64) {}

// Set implements meter.Meter.
func (g gauges) Set(to meter.Gauge, behavior string, value float64) {
	g[meter.Gauges[to].Name+" "+behavior] = value
}

func TestVitals_SetEveryGaugeAndThoseOfEmptyBacklogsToZero(t *testing.T) {
	g := gauges{}
	before := meter.Vitals{TasksReady: map[string]int{"gone": 3, "stays": 4}}
	now := meter.Vitals{TasksReady: map[string]int{"stays": 5}, Slots: 7, StoreBytes: 8}
	before.Tell(g, &meter.Vitals{})
	now.Tell(g, &before)
	for name, want := range map[string]float64{"tasks_ready gone": 0, "tasks_ready stays": 5, "slots ": 7, "store_bytes ": 8, "ready ": 0} {
		if got, set := g[name]; !set || got != want {
			t.Errorf("%s: %v, %v, want %v", name, got, set, want)
		}
	}
	for i, d := range meter.Gauges {
		if _, set := g[d.Name+" "]; !set && meter.Gauge(i) != meter.TasksReady {
			t.Errorf("%s is not set", d.Name)
		}
	}
}
