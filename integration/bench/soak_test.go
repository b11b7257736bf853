package bench_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/cluster"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/task"
)

const (
	soakInFlight = 1000
	soakSkip     = 0.2 // of the samples, at the beginning, that say nothing of the growth
	million      = 1e6
	mebibyte     = 1 << 20
)

// BenchmarkSoak runs noop tasks through one node, with snapshots, archive, trims and compaction on, until so many are
// done or the time is over, and fits a line through samples of all that may grow: by how many percent of its mean for
// each million tasks it does. At full speed the first two million fill etcd's file, and with it resident memory, up to
// where they stay.
//
// While the archive is away no journal is trimmed: etcd, in a process of its own, grows until it is almost full and
// tasks are refused, which are then submitted again; the node's memory must not grow with it.
func BenchmarkSoak(b *testing.B) {
	// Journals are trimmed at full speed: without that etcd would hold every entry. Memory is bounded, also while
	// they cannot be.
	b.Run("archive=there", func(b *testing.B) {
		run(b, func(tb testing.TB) figures {
			w := soak{tasks: soakTasks(20_000, 2_000_000), duration: lasts(5*time.Second, 45*time.Second)}
			f, kept := w.run(tb, servers(tb, 0))
			f.atMost("kept-share", kept, 0.9)
			return f
		})
	})
	b.Run("archive=away", func(b *testing.B) {
		run(b, func(tb testing.TB) figures {
			w := soak{tasks: soakTasks(20_000, 1<<40), duration: lasts(5*time.Second, 30*time.Second), away: true}
			f, kept := w.run(tb, serversApart(tb, 0))
			f.is("kept-share", kept)
			f.is("refused", float64(w.refused.Load()))
			return f
		})
	})
}

// soakTasks bounds the tasks: all in a proof, else few, and none where the flag says how long.
func soakTasks(few, all int) int64 {
	if *length > 0 {
		return math.MaxInt64
	}
	return int64(testkit.Times(few, all))
}

// soak is the load. Unlike measure.Loop it remembers nothing.
type soak struct {
	tasks    int64         // at most
	duration time.Duration // at most
	away     bool          // the archive is

	begun, done, refused atomic.Int64
}

// run makes the load. It returns the share of all entries that etcd holds at the end, too.
func (w *soak) run(tb testing.TB, s *measure.Servers) (f figures, kept float64) {
	cfg := engine.NodeConfig{Name: "a", Slots: measure.SlotsFor(soakInFlight), Behaviors: []task.Behavior{noop}}
	n := node(tb, s, cfg, func(cfg *engine.NodeConfig, c *cluster.Cluster) {
		if cfg.Archive = c.Archive; w.away {
			cfg.Archive = awayArchive{}
		}
	})
	var samples []sample
	begun := time.Now()
	g, both := errgroup.WithContext(tb.Context())
	working, finish := context.WithTimeout(both, w.duration)
	defer finish()
	g.Go(func() error {
		defer finish()
		return w.load(both, working, measure.SubmitAndWait(n.Client))
	})
	g.Go(func() (err error) {
		samples, err = w.watch(both, working, n)
		return err
	})
	check(tb, g.Wait())
	f = newFigures(tb)
	f.is("tasks/s", float64(w.done.Load())/time.Since(begun).Seconds())
	growth(f, samples)
	return f, keptShare(tb, n)
}

// load keeps tasks in flight until so many are done or working ends.
func (w *soak) load(ctx, working context.Context, submit measure.Op) error {
	g, ctx := errgroup.WithContext(ctx)
	for worker := range soakInFlight {
		g.Go(func() error {
			for w.begun.Add(1) <= w.tasks && working.Err() == nil {
				if err := w.insist(ctx, working, submit, worker); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// insist submits a task again, while it is refused for lack of space, as long as working goes on.
func (w *soak) insist(ctx, working context.Context, submit measure.Op, worker int) error {
	for {
		err := submit(ctx, worker)
		refusal, refused := errors.AsType[*task.OverloadError](err)
		switch {
		case err == nil:
			w.done.Add(1)
			return nil
		case !refused || !w.away:
			return err
		}
		w.refused.Add(1)
		if !pause(working, refusal.RetryAfter) {
			return nil
		}
	}
}

// sample tells of everything that may grow, at the time that so many tasks were done.
type sample struct {
	tasks                          float64
	store, file, heap, rss, opened float64
}

// watch takes samples until working ends.
func (w *soak) watch(ctx, working context.Context, n *measure.Node) (all []sample, err error) {
	every := time.Duration(testkit.Times(1, 5)) * time.Second
	for pause(working, every) {
		u, err := n.Cluster.Store.Usage(ctx)
		if err != nil {
			return nil, err
		}
		rss, err := residentBytes()
		if err != nil {
			return nil, err
		}
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return nil, err
		}
		all = append(all, sample{
			tasks:  float64(w.done.Load()),
			store:  float64(u.InUse),
			file:   float64(u.Size),
			heap:   float64(liveHeap()),
			rss:    rss,
			opened: float64(len(files)),
		})
	}
	return all, nil
}

// residentBytes reads the memory that this process holds.
func residentBytes() (float64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("read resident memory: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("read resident memory: %q", text)
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()), err
}

// keptShare returns the share of all entries that the journals still hold.
func keptShare(tb testing.TB, n *measure.Node) float64 {
	var all, gone uint64
	for _, s := range must(n.Operations().Shards(tb.Context()))(tb) {
		all += s.Entries
		gone += max(s.First, 1) - 1
	}
	return 1 - float64(gone)/float64(all)
}

// growth sets the means of the samples after the first fifth, and the slopes of the lines through them.
func growth(f figures, samples []sample) {
	samples = samples[int(soakSkip*float64(len(samples))):]
	mean := func(what string, of func(sample) float64, scale float64) float64 {
		mean, slope := leastSquares(samples, of)
		f.is(what+"-growth-pct/Mtask", slope)
		return mean / scale
	}
	f.is("store-MiB", mean("store", func(s sample) float64 { return s.store }, mebibyte))
	f.is("store-file-MiB", mean("store-file", func(s sample) float64 { return s.file }, mebibyte))
	f.is("rss-MiB", mean("rss", func(s sample) float64 { return s.rss }, mebibyte))
	f.atMost("heap-MiB", mean("heap", func(s sample) float64 { return s.heap }, mebibyte), 400)
	f.atMost("open-files", mean("open-files", func(s sample) float64 { return s.opened }, 1), 40)
}

// leastSquares returns the mean, and the slope in percent of it for each million tasks: neither is a number where fewer
// than two samples could tell.
func leastSquares(samples []sample, of func(sample) float64) (mean, slope float64) {
	if len(samples) < 2 {
		return math.NaN(), math.NaN()
	}
	var meanTasks float64
	for _, s := range samples {
		mean += of(s) / float64(len(samples))
		meanTasks += s.tasks / float64(len(samples))
	}
	var products, squares float64
	for _, s := range samples {
		products += (s.tasks - meanTasks) * (of(s) - mean)
		squares += (s.tasks - meanTasks) * (s.tasks - meanTasks)
	}
	if squares == 0 || mean == 0 {
		return mean, 0
	}
	return mean, products / squares * million / mean * 100
}

var errArchiveAway = errors.New("the archive is away")

// awayArchive is an archive that cannot be reached.
type awayArchive struct{}

func (awayArchive) DurableAfter() time.Duration { return 0 }

func (awayArchive) Head(context.Context, int) (store.ArchiveHead, error) {
	return store.ArchiveHead{}, errArchiveAway
}

func (awayArchive) Archive(context.Context, int, store.ArchiveHead, []store.Record) (store.ArchiveHead, error) {
	return store.ArchiveHead{}, errArchiveAway
}

func (awayArchive) Confirm(context.Context, int, store.ArchiveHead, []store.Record) error {
	return errArchiveAway
}

func (awayArchive) ReadArchive(context.Context, int, uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) { yield(store.Record{}, errArchiveAway) }
}

func (awayArchive) FindArchived(context.Context, int, events.TaskID, uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) { yield(store.Record{}, errArchiveAway) }
}
