package ui

import (
	"strings"
	"time"

	"taskledger/api/ui/trend"
	"taskledger/meter"
)

// drawing shows what the cluster has done lately as charts.
type drawing struct {
	Charts  []chart
	LeftOut string // numbers of shards that are not counted all the time
}

// chart is a drawing of numbers of one unit.
type chart struct {
	trend.Chart
	Title string
	unit  func(float64) string
}

// Show shows a number of the chart with its unit.
func (c chart) Show(n float64) string { return c.unit(n) }

// Words describes the chart in text, for viewers who cannot see it.
func (c chart) Words() string {
	words := make([]string, 0, len(c.Lines))
	for _, line := range c.Lines {
		says := "none"
		if line.Known {
			says = c.Show(line.Last) + " now, " + c.Show(line.Most) + " at most"
		}
		words = append(words, line.Name+": "+says)
	}
	return c.Title + ", " + strings.Join(words, "; ")
}

// draw makes charts of points; nil = there are none yet.
func draw(points []trend.Point) *drawing {
	if len(points) == 0 {
		return nil
	}
	rate := func(name string, of meter.Counter) trend.Curve {
		return trend.Curve{Name: name, Of: func(p *trend.Point) (float64, bool) {
			total := p.Total()
			return float64(total.Counts[of]) / p.To.Sub(p.From).Seconds(), !p.Unknown
		}}
	}
	quantile := func(name string, q float64, of meter.Histogram) trend.Curve {
		return trend.Curve{Name: name, Of: func(p *trend.Point) (float64, bool) {
			total := p.Total()
			d := &total.Times[of]
			return d.Quantile(q).Seconds(), d.N() > 0
		}}
	}
	length := func(n float64) string { return lengthOf(time.Duration(n * float64(time.Second))) }
	return &drawing{
		Charts: []chart{
			{
				trend.Draw(points, rate("succeeded", meter.AttemptsSucceeded), rate("failed", meter.Failures)),
				"Attempts that ended",
				rateOf,
			},
			{
				trend.Draw(points, quantile("median", 0.5, meter.Duration), quantile("99th percentile", 0.99, meter.Duration)),
				"How long attempts took",
				length,
			},
			{
				trend.Draw(points, quantile("median", 0.5, meter.Lateness), quantile("99th percentile", 0.99, meter.Lateness)),
				"How late attempts started",
				length,
			},
		},
		LeftOut: numbersOf(trend.LeftOut(points)),
	}
}
