package bench_test

import (
	"context"
	"math"
	"testing"
	"time"

	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/internal/measure"
	"taskledger/store"
	"taskledger/task"
)

const (
	upkeepInFlight = 1000
	upkeepPoll     = 100 * time.Millisecond
	upkeepIdle     = time.Second // without progress shows that a node has caught up
)

// unsnapshotted is a store whose shards have, it says, just had a snapshot too large to be followed by another.
type unsnapshotted struct{ store.Store }

func (s unsnapshotted) Pointer(ctx context.Context, shard int) (store.SnapshotPointer, error) {
	return store.SnapshotPointer{Kept: []store.SnapshotInfo{{Bytes: math.MaxInt64}}}, nil
}

// BenchmarkUpkeep compares a node with snapshots, archive and trims with one that has none of them, in two clusters on
// the same servers. A window of the first lasts until it has caught up.
func BenchmarkUpkeep(b *testing.B) { run(b, upkeep) }

func upkeep(tb testing.TB) figures {
	s := servers(tb, 0)
	start := func(name string, with measure.With) *measure.Node {
		c := must(s.Open(tb.Context(), name))(tb)
		cfg := engine.NodeConfig{Name: "a", Slots: measure.SlotsFor(upkeepInFlight), Behaviors: []task.Behavior{noop}}
		n := must(measure.StartNode(tb.Context(), c, cfg, with))(tb)
		tb.Cleanup(func() { ended(tb, n.Close()) })
		return n
	}
	kept := start("kept", measure.Archived)
	bare := start("bare", func(cfg *engine.NodeConfig, c *cluster.Cluster) { cfg.Store = unsnapshotted{c.Store} })
	ofKept, ofBare := loadOf(kept, upkeepInFlight), loadOf(bare, upkeepInFlight)
	warm(tb, ofKept, ofBare)
	var behind time.Duration
	var archived uint64
	caughtUp := func(ctx context.Context, length time.Duration) (w measure.Window, err error) {
		if w, err = ofKept(ctx, length); err != nil {
			return w, err
		}
		late, entries, err := catchUp(ctx, kept)
		w.Took += late
		behind, archived = behind+late, entries
		return w, err
	}
	// A window is long enough that several snapshots fall into it.
	total, window := lasts(2*time.Second, 20*time.Second), lasts(time.Second, 10*time.Second)
	all := must(measure.ByTurns(tb.Context(), total, min(window, 10*time.Second), caughtUp, ofBare))(tb)
	f := newFigures(tb)
	f.tasks("task", all[0].Sum())
	f.tasks("bare-task", all[1].Sum())
	f.is("p99-ms", measure.Quantile(all[0].Sum().Times, 0.99))
	f.is("bare-p99-ms", measure.Quantile(all[1].Sum().Times, 0.99))
	f.is("catch-up-s", behind.Seconds()/float64(len(all[0])))
	f.is("entries-archived", float64(archived))
	// Snapshots, archive and trims may cost 15 % on a quiet machine.
	f.atLeast("ratio", measure.Ratio(all[0], all[1]), 0.6)
	return f
}

// loadOf returns the side of a closed loop of noop tasks.
func loadOf(n *measure.Node, inFlight int) measure.Side {
	return measure.Closed(inFlight, 1, measure.SubmitAndWait(n.Client))
}

// catchUp waits until snapshots, archive and trims of a node make no more progress. It returns how long they made some,
// and how many entries are archived.
func catchUp(ctx context.Context, n *measure.Node) (took time.Duration, archived uint64, err error) {
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
		if !pause(ctx, upkeepPoll) {
			return 0, 0, context.Cause(ctx)
		}
	}
	return last.Sub(begun), archived, nil
}
