package bench_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/internal/measure"
	"taskledger/meter/prommeter"
)

const meterInFlight = 1000

// BenchmarkMeter compares two nodes that tell a Prometheus meter what they do, as with serve --metrics, with two that
// have none. The figures themselves, which owners count for stats, are counted by both.
func BenchmarkMeter(b *testing.B) {
	run(b, func(tb testing.TB) figures {
		bare, metered := metered(tb, false), metered(tb, true)
		warm(tb, bare, metered)
		// Whatever drifts evenly weighs on both sides alike.
		all := byTurns(tb, lasts(4*time.Second, 24*time.Second), bare, metered, metered, bare)
		var costs []float64
		for i := range all[0] {
			with := measure.Series{all[1][i], all[2][i]}.Sum()
			without := measure.Series{all[0][i], all[3][i]}.Sum()
			costs = append(costs, 100*(with.CPUEach()/without.CPUEach()-1))
		}
		f := newFigures(tb)
		f.tasks("task", append(all[1], all[2]...).Sum())
		f.tasks("bare-task", append(all[0], all[3]...).Sum())
		// A meter costs 2 % of CPU per task.
		f.atMost("cost-pct", measure.Median(costs), 10)
		return f
	})
}

// metered starts a cluster, and returns the side of its load.
func metered(tb testing.TB, is bool) measure.Side {
	a, b := runs(), runs(noop)
	if is {
		a.Meter = must(prommeter.New(prometheus.NewRegistry()))(tb)
		b.Meter = must(prommeter.New(prometheus.NewRegistry()))(tb)
	}
	return loadOf(pairOf(tb, servers(tb, 0), meterInFlight, a, b).Node, meterInFlight)
}
