package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors"
	"taskledger/engine"
)

const (
	soakSkip = 0.2 // of the samples, at the beginning, that say nothing of the slope
	million  = 1e6
)

// SoakConfig says how long to run at full speed.
type SoakConfig struct {
	Tasks    int           // at most
	Duration time.Duration // at most
	InFlight int
	Sample   time.Duration // between two samples
}

// SoakResult is what one node at full speed came to. Means and slopes are over the samples after the first fifth; a slope
// is by least squares, in percent of the mean for each million tasks.
type SoakResult struct {
	Tasks     int     `json:"tasks"`
	DurationS float64 `json:"duration_s"`
	TasksPerS float64 `json:"tasks_per_s"`
	Samples   int     `json:"samples"`

	StoreBytes float64 `json:"store_bytes"` // etcd's, in use
	StoreSlope float64 `json:"store_slope_pct"`
	FileBytes  float64 `json:"store_file_bytes"` // etcd's file
	FileSlope  float64 `json:"store_file_slope_pct"`
	HeapBytes  float64 `json:"heap_bytes"` // live, after a collection; of the node and both servers
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

// SoakPoint is what grew, or did not, by the time that so many tasks were done.
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
	s, err := startServers(ctx, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	link, err := s.link(ctx)
	if err != nil {
		return r, err
	}
	n, err := startNode(ctx, link, engine.NodeConfig{Name: "a", Archive: link.EngineArchive(), Slots: perTaskSlots * cfg.InFlight,
		Behaviors: []engine.Behavior{behaviors.Noop()}})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, n.close()) }()

	var done atomic.Int64
	var points []SoakPoint
	begun := time.Now()
	g, both := errgroup.WithContext(ctx)
	working, finish := context.WithTimeout(both, cfg.Duration)
	defer finish()
	g.Go(func() error {
		defer finish()
		return work(both, working, cfg, submitAndWait(n), &done)
	})
	g.Go(func() (err error) {
		points, err = watch(both, working, cfg.Sample, n, &done, progress)
		return err
	})
	if err := g.Wait(); err != nil {
		return r, err
	}
	r = summarize(points)
	if r.Kept, err = keptShare(ctx, n); err != nil {
		return r, err
	}
	r.Tasks, r.DurationS = int(done.Load()), time.Since(begun).Seconds()
	r.TasksPerS = float64(r.Tasks) / r.DurationS
	return r, nil
}

// work keeps tasks in flight until so many are done or working ends. Unlike closedLoop it remembers nothing.
func work(ctx, working context.Context, cfg SoakConfig, turn func(context.Context, int) error, done *atomic.Int64) error {
	var begun atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for worker := range cfg.InFlight {
		g.Go(func() error {
			for working.Err() == nil && begun.Add(1) <= int64(cfg.Tasks) {
				if err := turn(ctx, worker); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	return g.Wait()
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

// keptShare is how many of all entries the journals still hold.
func keptShare(ctx context.Context, n *node) (float64, error) {
	shards, err := n.Shards(ctx)
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
