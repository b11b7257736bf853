package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"taskledger/meter"
	"taskledger/meter/prommeter"
)

// FiguresConfig says how to compare nodes that tell a meter what they do with nodes that have none. The figures
// themselves, which owners count for stats, are counted by both.
type FiguresConfig struct {
	InFlight int           // tasks under way; 1 or more
	Duration time.Duration // all windows together take so long, and each at least 2 s
}

// FiguresResult holds the measured values. Those called metered belong to the nodes with a meter.
type FiguresResult struct {
	TasksPerS           float64 `json:"tasks_per_s"`
	MeteredTasksPerS    float64 `json:"metered_tasks_per_s"`
	CPUUsPerTask        float64 `json:"cpu_us_per_task"`
	MeteredCPUUsPerTask float64 `json:"metered_cpu_us_per_task"`
	CostPercent         float64 `json:"cost_pct"` // CPU per task more with a meter: the median over the rounds
	Rounds              int     `json:"rounds"`
	InFlight            int     `json:"in_flight"`
	DurationS           float64 `json:"duration_s"`
}

// figuresWindows are the windows of a round, true = metered. What drifts evenly weighs on both sides alike.
var figuresWindows = [...]bool{false, true, true, false}

// Figures makes rounds of windows of the closed loop of Run on two clusters, of which the nodes of one have a
// Prometheus meter.
func Figures(ctx context.Context, cfg FiguresConfig) (r FiguresResult, err error) {
	var sides [2]*figuresSide
	for i := range sides {
		if sides[i], err = startSide(ctx, cfg.InFlight, i == 1); err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, sides[i].close()) }()
		if _, err := closedLoop(ctx, cfg.InFlight, warmUp, sides[i].op); err != nil {
			return r, err
		}
	}
	r.Rounds = max(1, int(cfg.Duration/(time.Duration(len(figuresWindows))*minWindow)))
	length := max(minWindow, cfg.Duration/time.Duration(r.Rounds*len(figuresWindows)))
	var costs []float64
	for range r.Rounds {
		var round [2]work
		for _, metered := range figuresWindows {
			i := 0
			if metered {
				i = 1
			}
			of, err := round[i].window(ctx, sides[i].servers, cfg.InFlight, length, 1, sides[i].op)
			if err != nil {
				return r, err
			}
			sides[i].all.add(of)
		}
		costs = append(costs, 100*(round[1].cpuPerTask()/round[0].cpuPerTask()-1))
	}
	bare, metered := sides[0].all, sides[1].all
	r.TasksPerS, r.MeteredTasksPerS = bare.perSecond(), metered.perSecond()
	r.CPUUsPerTask, r.MeteredCPUUsPerTask = bare.cpuPerTask(), metered.cpuPerTask()
	r.CostPercent, r.InFlight, r.DurationS = median(costs), cfg.InFlight, (bare.took + metered.took).Seconds()
	return r, nil
}

// figuresSide is one of the two clusters, and what its windows came to.
type figuresSide struct {
	servers *servers
	a, b    *node
	op      func(context.Context, int) error
	all     work
}

func startSide(ctx context.Context, inFlight int, metered bool) (*figuresSide, error) {
	meters, err := newMeters(metered)
	if err != nil {
		return nil, err
	}
	s, err := startServers(ctx, nil)
	if err != nil {
		return nil, err
	}
	a, b, err := startPair(ctx, s, inFlight, meters)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return &figuresSide{servers: s, a: a, b: b, op: submitAndWait(a)}, nil
}

func (f *figuresSide) close() error {
	return errors.Join(f.a.close(), f.b.close(), f.servers.close())
}

// newMeters returns the meters of a pair of nodes, nil ones unless they are metered.
func newMeters(metered bool) (meters [2]meter.Meter, err error) {
	for i := range meters {
		if !metered {
			break
		}
		if meters[i], err = prommeter.New(prometheus.NewRegistry()); err != nil {
			return meters, fmt.Errorf("make a meter: %w", err)
		}
	}
	return meters, nil
}
