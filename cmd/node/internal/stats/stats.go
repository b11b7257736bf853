// Package stats shows what the owners of shards have counted: a table for people, JSON for programs.
package stats

import (
	"errors"
	"fmt"
	"time"

	"taskledger/cmd/node/internal/output"
	"taskledger/engine"
	"taskledger/meter"
	"taskledger/store"
)

// Row is the JSON form of meter.Figures.
type Row struct {
	Behavior   string                  `json:"behavior"`
	Counters   map[string]int64        `json:"counters"`
	Histograms map[string]distribution `json:"histograms"`
}

type distribution struct {
	Count   int64     `json:"count"`
	Sum     float64   `json:"sum"` // seconds, as are the others
	P50     float64   `json:"p50"`
	P99     float64   `json:"p99"`
	Buckets []int64   `json:"buckets"` // how many were within a bound of le and above the one before, the last above all
	LE      []float64 `json:"le"`
}

func rowOf(f *meter.Figures) Row {
	s := Row{f.Behavior, map[string]int64{}, map[string]distribution{}}
	for i, n := range f.Counts {
		s.Counters[meter.Counters[i].Name] = n
	}
	for i := range f.Times {
		d := &f.Times[i]
		s.Histograms[meter.Histograms[i].Name] = distribution{Count: d.N(), Sum: float64(d.SumMs) / 1000, P50: d.Quantile(0.5).Seconds(),
			P99: d.Quantile(0.99).Seconds(), Buckets: d.Buckets[:], LE: meter.Histograms[i].Bounds}
	}
	return s
}

// Columns are the headings of the table, in the order of the counters and the histograms.
var Columns = []string{"BEHAVIOR", "CREATED", "STARTED", "SUCCEEDED", "FAILED", "FINAL", "LOST", "SNOOZED", "RELEASED", "DELETED", "REFUSED",
	"LATE P50", "P99", "WAIT P50", "P99", "TOOK P50", "P99"}

// Show prints totals over the shards that answered, and returns one error per shard that did not.
func Show(p *output.Printer, shards []engine.ShardInfo) error {
	all := make([][]meter.Figures, 0, len(shards))
	var missing []error
	for _, s := range shards {
		if s.Problem != "" {
			missing = append(missing, fmt.Errorf("%w: shard %d is not counted: %s", store.ErrUnavailable, s.Shard, s.Problem))
			continue
		}
		all = append(all, s.Figures)
	}
	for _, f := range meter.Sum(all...) {
		cells := []any{f.Behavior}
		for _, n := range f.Counts {
			cells = append(cells, n)
		}
		for i := range f.Times {
			cells = append(cells, length(&f.Times[i], 0.5), length(&f.Times[i], 0.99))
		}
		if err := p.Row(rowOf(&f), cells...); err != nil {
			return err
		}
	}
	return errors.Join(append(missing, p.Flush())...)
}

// length is a quantile for people, "-" of no times.
func length(d *meter.Distribution, q float64) string {
	if d.N() == 0 {
		return "-"
	}
	switch at := d.Quantile(q); {
	case at < time.Second:
		return at.Round(100 * time.Microsecond).String()
	case at < time.Minute:
		return at.Round(10 * time.Millisecond).String()
	default:
		return at.Round(time.Second).String()
	}
}
