package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

const (
	soakSkip = 0.2 // of the samples, at the beginning, that say nothing of the slope
	million  = 1e6
)

// SoakConfig says how long to run, and how fast.
type SoakConfig struct {
	Tasks    int           // at most
	Duration time.Duration // at most
	InFlight int           // at most
	Rate     int           // tasks begun each second; 0 = at full speed
	Sample   time.Duration // between two samples

	// ArchiveAway lets the archive fail all the time, so that no journal is trimmed. Etcd, which then grows until the
	// brake refuses tasks, is in a process of its own.
	ArchiveAway bool
	Servers     []string // for that: the command line that calls Serve
}

// SoakResult holds the results of one node under constant load. Means and slopes cover the samples after the first
// fifth; a slope is by least squares, in percent of the mean for each million tasks.
type SoakResult struct {
	Tasks     int     `json:"tasks"`
	DurationS float64 `json:"duration_s"`
	TasksPerS float64 `json:"tasks_per_s"`
	Refused   int64   `json:"refused"` // submits while the store was almost full; each was made again
	Samples   int     `json:"samples"`

	StoreBytes float64 `json:"store_bytes"` // etcd's, in use
	StoreSlope float64 `json:"store_slope_pct"`
	FileBytes  float64 `json:"store_file_bytes"` // etcd's file
	FileSlope  float64 `json:"store_file_slope_pct"`
	HeapBytes  float64 `json:"heap_bytes"` // live, after a collection; of the node and the servers in its process
	HeapSlope  float64 `json:"heap_slope_pct"`
	RSSBytes   float64 `json:"rss_bytes"`
	RSSSlope   float64 `json:"rss_slope_pct"`
	Kept       float64 `json:"kept"` // share of all entries that is still in etcd at the end
	OpenFiles  float64 `json:"open_files"`
	FilesSlope float64 `json:"open_files_slope_pct"`

	Series []SoakPoint `json:"series"` // all samples
}

// Worst is the steepest slope.
func (r SoakResult) Worst() float64 {
	return max(r.StoreSlope, r.FileSlope, r.HeapSlope, r.RSSSlope, r.FilesSlope)
}

// SoakBounds are for checks; zero ones allow everything.
type SoakBounds struct {
	Kept      float64 // share of all entries that may be in etcd at the end
	SlopePct  float64 // as the slopes of SoakResult
	HeapMiB   float64 // mean
	OpenFiles float64 // mean
}

// Within returns which bound is broken, or could not be measured.
func (r SoakResult) Within(b SoakBounds) error {
	switch {
	case b != (SoakBounds{}) && r.Samples < 2:
		return fmt.Errorf("%d samples are too few to tell", r.Samples)
	case b.SlopePct > 0 && r.Worst() > b.SlopePct:
		return fmt.Errorf("something grows by %.2f %% for each million tasks, more than the %.2f allowed", r.Worst(), b.SlopePct)
	case b.Kept > 0 && r.Kept > b.Kept:
		return fmt.Errorf("etcd holds %.2f of all entries at the end, more than the %.2f allowed", r.Kept, b.Kept)
	case b.HeapMiB > 0 && r.HeapBytes/(1<<20) > b.HeapMiB:
		return fmt.Errorf("the live heap takes %.0f MiB, more than the %.0f allowed", r.HeapBytes/(1<<20), b.HeapMiB)
	case b.OpenFiles > 0 && r.OpenFiles > b.OpenFiles:
		return fmt.Errorf("%.0f files are open, more than the %.0f allowed", r.OpenFiles, b.OpenFiles)
	}
	return nil
}

// SoakPoint samples everything that may grow, at the time that so many tasks were done.
type SoakPoint struct {
	Tasks int     `json:"tasks"`
	Store float64 `json:"store_bytes"`
	File  float64 `json:"store_file_bytes"`
	Heap  float64 `json:"heap_bytes"`
	RSS   float64 `json:"rss_bytes"`
	Files float64 `json:"open_files"`
}

// Soak runs noop tasks through one node, with snapshots and the archive on, and watches what grows. progress is told of
// the tasks done.
func Soak(ctx context.Context, cfg SoakConfig, progress func(tasks int)) (r SoakResult, err error) {
	var self []string
	if cfg.ArchiveAway {
		self = cfg.Servers
	}
	s, err := startServers(ctx, self)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	link, err := s.link(ctx)
	if err != nil {
		return r, err
	}
	archive := link.Archive
	if cfg.ArchiveAway {
		archive = awayArchive{}
	}
	n, err := startNode(ctx, link, engine.NodeConfig{Name: "a", Archive: archive, Slots: perTaskSlots * cfg.InFlight,
		Behaviors: []task.Behavior{builtin.Noop()}})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, n.close()) }()

	w := &soakWork{SoakConfig: cfg, turn: submitAndWait(n)}
	var points []SoakPoint
	begun := time.Now()
	g, both := errgroup.WithContext(ctx)
	working, finish := context.WithTimeout(both, cfg.Duration)
	defer finish()
	g.Go(func() error {
		defer finish()
		return w.run(both, working)
	})
	g.Go(func() (err error) {
		points, err = watch(both, working, cfg.Sample, n, &w.done, progress)
		return err
	})
	if err := g.Wait(); err != nil {
		return r, err
	}
	r = summarize(points)
	if r.Kept, err = keptShare(ctx, n); err != nil {
		return r, err
	}
	r.Tasks, r.Refused, r.DurationS = int(w.done.Load()), w.refused.Load(), time.Since(begun).Seconds()
	r.TasksPerS = float64(r.Tasks) / r.DurationS
	return r, nil
}

// soakWork is the load. Unlike closedLoop it remembers nothing.
type soakWork struct {
	SoakConfig
	turn                 func(ctx context.Context, worker int) error
	begun, done, refused atomic.Int64
}

// run keeps tasks in flight until so many are done or working ends.
func (w *soakWork) run(ctx, working context.Context) error {
	start := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for worker := range w.InFlight {
		g.Go(func() error {
			for n := w.begun.Add(1); n <= int64(w.Tasks) && w.awaitTurn(working, start, n); n = w.begun.Add(1) {
				if err := w.insist(ctx, working, worker); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// awaitTurn waits until the n-th task is due. It returns false when working has ended.
func (w *soakWork) awaitTurn(working context.Context, start time.Time, n int64) bool {
	if w.Rate == 0 {
		return working.Err() == nil
	}
	due := start.Add(time.Duration(float64(n-1) / float64(w.Rate) * float64(time.Second)))
	return pause(working, time.Until(due))
}

// insist submits a task again, while it is refused for lack of space, as long as working goes on.
func (w *soakWork) insist(ctx, working context.Context, worker int) error {
	for {
		err := w.turn(ctx, worker)
		refusal, refused := errors.AsType[*task.OverloadError](err)
		switch {
		case err == nil:
			w.done.Add(1)
			return nil
		case !refused || !w.ArchiveAway:
			return err
		}
		w.refused.Add(1)
		if !pause(working, refusal.RetryAfter) {
			return nil
		}
	}
}

// pause waits, and returns false when working has ended.
func pause(working context.Context, d time.Duration) bool {
	if d <= 0 {
		return working.Err() == nil
	}
	select {
	case <-working.Done():
		return false
	case <-time.After(d):
		return true
	}
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

// watch takes samples until working ends.
func watch(ctx, working context.Context, every time.Duration, n *node, done *atomic.Int64, progress func(int)) (points []SoakPoint, err error) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-working.Done():
			return points, nil
		case <-ticker.C:
		}
		p, err := soakNow(ctx, n, done)
		if err != nil {
			return nil, err
		}
		points = append(points, p)
		progress(p.Tasks)
	}
}

func soakNow(ctx context.Context, n *node, done *atomic.Int64) (p SoakPoint, err error) {
	u, err := n.link.Store.Usage(ctx)
	if err != nil {
		return p, err
	}
	if p.RSS, err = residentBytes(); err != nil {
		return p, err
	}
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return p, err
	}
	p.Store, p.File, p.Files = float64(u.InUse), float64(u.Size), float64(len(files))
	p.Heap, p.Tasks = float64(liveHeap()), int(done.Load())
	return p, nil
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
func keptShare(ctx context.Context, n *node) (float64, error) {
	shards, err := n.Operations().Shards(ctx)
	if err != nil {
		return 0, err
	}
	var all, gone uint64
	for _, s := range shards {
		all += s.Entries
		gone += max(s.First, 1) - 1
	}
	return 1 - float64(gone)/float64(max(all, 1)), nil
}

func summarize(points []SoakPoint) SoakResult {
	r := SoakResult{Series: points}
	points = points[int(soakSkip*float64(len(points))):]
	r.Samples = len(points)
	for _, c := range []struct {
		mean, slope *float64
		of          func(SoakPoint) float64
	}{
		{&r.StoreBytes, &r.StoreSlope, func(p SoakPoint) float64 { return p.Store }},
		{&r.FileBytes, &r.FileSlope, func(p SoakPoint) float64 { return p.File }},
		{&r.HeapBytes, &r.HeapSlope, func(p SoakPoint) float64 { return p.Heap }},
		{&r.RSSBytes, &r.RSSSlope, func(p SoakPoint) float64 { return p.RSS }},
		{&r.OpenFiles, &r.FilesSlope, func(p SoakPoint) float64 { return p.Files }},
	} {
		*c.mean, *c.slope = leastSquares(points, c.of)
	}
	return r
}

// leastSquares returns the mean, and the slope in percent of it for each million tasks.
func leastSquares(points []SoakPoint, of func(SoakPoint) float64) (mean, slope float64) {
	if len(points) < 2 {
		return 0, 0
	}
	var meanTasks float64
	for _, p := range points {
		mean += of(p) / float64(len(points))
		meanTasks += float64(p.Tasks) / float64(len(points))
	}
	var products, squares float64
	for _, p := range points {
		products += (float64(p.Tasks) - meanTasks) * (of(p) - mean)
		squares += (float64(p.Tasks) - meanTasks) * (float64(p.Tasks) - meanTasks)
	}
	if squares == 0 || mean == 0 {
		return mean, 0
	}
	return mean, products / squares * million / mean * 100
}
