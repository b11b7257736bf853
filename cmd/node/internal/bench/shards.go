package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/task"
)

// ShardsConfig says how to compare a backlog in many shards with one in few.
type ShardsConfig struct {
	Few, Many int // shards of either cluster
	Behaviors int // kinds of tasks, of which every shard has some
	Slots     int // of the one node of either cluster
	InFlight  int // tasks that are submitted and have not ended
	Duration  time.Duration
}

// ShardsResult holds the measured values. Those without a prefix belong to the cluster of few shards.
type ShardsResult struct {
	TasksPerS        float64 `json:"tasks_per_s"`
	ManyTasksPerS    float64 `json:"many_tasks_per_s"`
	Ratio            float64 `json:"ratio"` // median over pairs of neighbouring windows
	CPUUsPerTask     float64 `json:"cpu_us_per_task"`
	ManyCPUUsPerTask float64 `json:"many_cpu_us_per_task"`
	Few              int     `json:"few_shards"`
	Many             int     `json:"many_shards"`
	DurationS        float64 `json:"duration_s"`
}

// Shards lets one node with few slots work off a backlog that is spread over all of its shards, in a cluster of few
// shards and in one of many by turns.
func Shards(ctx context.Context, cfg ShardsConfig) (r ShardsResult, err error) {
	few, err := startBacklog(ctx, cfg, cfg.Few)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, few.close()) }()
	many, err := startBacklog(ctx, cfg, cfg.Many)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, many.close()) }()
	pairs := max(1, int(cfg.Duration/(2*minWindow)))
	length := max(minWindow, cfg.Duration/time.Duration(2*pairs))
	var ofFew, ofMany work
	var ratios []float64
	for range pairs {
		a, err := ofFew.window(ctx, few.servers, cfg.InFlight, length, 1, few.turn)
		if err != nil {
			return r, err
		}
		b, err := ofMany.window(ctx, many.servers, cfg.InFlight, length, 1, many.turn)
		if err != nil {
			return r, err
		}
		ratios = append(ratios, b.perSecond()/a.perSecond())
	}
	return ShardsResult{
		TasksPerS:        ofFew.perSecond(),
		ManyTasksPerS:    ofMany.perSecond(),
		Ratio:            median(ratios),
		CPUUsPerTask:     ofFew.cpuPerTask(),
		ManyCPUUsPerTask: ofMany.cpuPerTask(),
		Few:              cfg.Few,
		Many:             cfg.Many,
		DurationS:        (ofFew.took + ofMany.took).Seconds(),
	}, nil
}

// backlog is a cluster of one node with few slots.
type backlog struct {
	servers   *servers
	node      *node
	behaviors []task.Behavior
}

func startBacklog(ctx context.Context, cfg ShardsConfig, shards int) (*backlog, error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return nil, err
	}
	s.shards = shards
	b := &backlog{servers: s}
	for i := range cfg.Behaviors {
		does := func(context.Context, behaviors.None) (behaviors.None, error) { return behaviors.None{}, nil }
		b.behaviors = append(b.behaviors, behaviors.Define[behaviors.None, behaviors.None](fmt.Sprint("kind-", i), nil).Bind(does))
	}
	link, err := s.link(ctx)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	b.node, err = startNode(ctx, link, engine.NodeConfig{Name: "n", Slots: cfg.Slots, Grace: -1, Behaviors: b.behaviors})
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err := settle(ctx, b.node); err != nil {
		return nil, errors.Join(err, b.close())
	}
	_, err = closedLoop(ctx, cfg.InFlight, warmUp, b.turn)
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// turn submits a task under an id of its own, so that the tasks are spread over all shards, and waits for its outcome.
func (b *backlog) turn(ctx context.Context, caller int) error {
	id := events.TaskID(fmt.Sprintf("%d-%d", caller, time.Now().UnixNano()))
	f, err := b.node.Submit(ctx, b.behaviors[caller%len(b.behaviors)], nil, task.SubmitOptions{ID: id})
	if err != nil {
		return fmt.Errorf("submit %s: %w", id, err)
	}
	if _, err := f.Wait(ctx); err != nil {
		return fmt.Errorf("wait for %s: %w", id, err)
	}
	return nil
}

func (b *backlog) close() error { return errors.Join(b.node.close(), b.servers.close()) }
