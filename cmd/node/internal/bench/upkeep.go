package bench

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/connect"
	"taskledger/engine"
	"taskledger/store"
	"taskledger/task"
)

const (
	upkeepPoll = 100 * time.Millisecond
	upkeepIdle = time.Second // without progress: it has caught up
)

// UpkeepConfig says how to measure what snapshots, archive and trims cost.
type UpkeepConfig struct {
	InFlight int
	Duration time.Duration // of all windows together
	Window   time.Duration // of one; long enough that several snapshots fall into it
}

// UpkeepResult compares one node with snapshots, archive and trims to one without, on the same servers, in windows that
// alternate. A window with them lasts until they have caught up.
type UpkeepResult struct {
	TasksPerS     float64 `json:"tasks_per_s"`
	BareTasksPerS float64 `json:"bare_tasks_per_s"`
	Ratio         float64 `json:"ratio"` // median over pairs of neighbouring windows
	P99Ms         float64 `json:"p99_ms"`
	BareP99Ms     float64 `json:"bare_p99_ms"`
	CatchUpS      float64 `json:"catch_up_s"` // mean, after a window
	Entries       uint64  `json:"entries_archived"`
	DurationS     float64 `json:"duration_s"`
}

// unsnapshotted is a store whose shards have, it says, just had a snapshot too large to be followed by another.
type unsnapshotted struct{ store.Store }

func (s unsnapshotted) Pointer(ctx context.Context, shard int) (store.SnapshotPointer, error) {
	return store.SnapshotPointer{Kept: []store.SnapshotInfo{{Bytes: math.MaxInt64}}}, nil
}

// Upkeep measures noop tasks with and without snapshots, archive and trims.
func Upkeep(ctx context.Context, cfg UpkeepConfig) (r UpkeepResult, err error) {
	s, err := startServers(ctx, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	start := func(name string, bare bool) (*node, error) {
		link, err := connect.On(ctx, s.embedded, name, 0, discard)
		if err != nil {
			return nil, err
		}
		conf := engine.NodeConfig{Name: "a", Slots: perTaskSlots * cfg.InFlight, Behaviors: []task.Behavior{builtin.Noop()}}
		if !bare {
			conf.Archive = link.Archive
			return startNode(ctx, link, conf)
		}
		return startNodeOn(ctx, link, unsnapshotted{link.Store}, conf)
	}
	kept, err := start("kept", false)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, kept.close()) }()
	bare, err := start("bare", true)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bare.close()) }()
	return alternate(ctx, cfg, kept, bare)
}

func alternate(ctx context.Context, cfg UpkeepConfig, kept, bare *node) (r UpkeepResult, err error) {
	for _, n := range []*node{kept, bare} {
		if _, err := closedLoop(ctx, cfg.InFlight, warmUp, submitAndWait(n)); err != nil {
			return r, err
		}
	}
	var ratios []float64
	var tasks, bareTasks int
	var took, bareTook, behind time.Duration
	var times, bareTimes []time.Duration
	pairs := max(1, int(cfg.Duration/(2*cfg.Window)))
	for range pairs {
		w, err := closedLoop(ctx, cfg.InFlight, cfg.Window, submitAndWait(kept))
		if err != nil {
			return r, err
		}
		late, archived, err := catchUp(ctx, kept)
		if err != nil {
			return r, err
		}
		b, err := closedLoop(ctx, cfg.InFlight, cfg.Window, submitAndWait(bare))
		if err != nil {
			return r, err
		}
		w.took += late
		r.Entries, behind = archived, behind+late
		tasks, bareTasks, took, bareTook = tasks+w.count, bareTasks+b.count, took+w.took, bareTook+b.took
		ratios = append(ratios, w.perSecond()/b.perSecond())
		times, bareTimes = append(times, w.times...), append(bareTimes, b.times...)
	}
	r.TasksPerS, r.BareTasksPerS = float64(tasks)/took.Seconds(), float64(bareTasks)/bareTook.Seconds()
	r.Ratio, r.CatchUpS, r.DurationS = median(ratios), behind.Seconds()/float64(pairs), (took + bareTook).Seconds()
	slices.Sort(times)
	slices.Sort(bareTimes)
	r.P99Ms, r.BareP99Ms = quantile(times, 0.99), quantile(bareTimes, 0.99)
	return r, nil
}

// catchUp waits until snapshots, archive and trims of a node make no more progress. It returns how long they made some,
// and how many entries are archived.
func catchUp(ctx context.Context, n *node) (took time.Duration, archived uint64, err error) {
	begun, last := time.Now(), time.Now()
	var before uint64
	for time.Since(last) < upkeepIdle {
		shards, err := n.Operations().Shards(ctx)
		if err != nil {
			return 0, 0, err
		}
		var now uint64
		archived = 0
		for _, s := range shards {
			now += s.Snapshot + s.First + s.Archived
			archived += s.Archived
		}
		if now != before {
			before, last = now, time.Now()
		}
		select {
		case <-time.After(upkeepPoll):
		case <-ctx.Done():
			return 0, 0, context.Cause(ctx)
		}
	}
	return last.Sub(begun), archived, nil
}
