package trend

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"taskledger/engine"
	"taskledger/meter"
)

const (
	// Every is the time between two samples.
	Every = 10 * time.Second
	// Window is the time that is kept.
	Window = 15 * time.Minute
	// maxPoints bounds what is kept, however the clock goes.
	maxPoints = int(Window / Every)
)

// Point tells what was committed between two samples. It is never changed.
type Point struct {
	From, To time.Time
	// Figures are by behavior, in the order of their ids, without those that did nothing.
	Figures []meter.Figures
	// Missing lists the shards whose figures are not counted, since their owners did not answer.
	Missing []int
	// Unknown says that nobody could be asked: Figures are none.
	Unknown bool
}

// Trend keeps the points of Window. The zero value is empty. It may be used concurrently.
type Trend struct {
	mu     sync.Mutex
	points []Point
	at     time.Time // of the last sample; zero = there is none
	seen   map[int]counted
}

// counted holds what the owner of a shard had counted at the last sample.
type counted struct {
	epoch   int64
	began   uint64
	figures []meter.Figures // by behavior
}

// Points returns what is kept, the oldest first. The caller must not change it.
func (t *Trend) Points() []Point {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.points)
}

// Add takes a sample: the reports of all shards at a time. nil stands for none, since nobody could be asked.
func (t *Trend) Add(at time.Time, shards []engine.ShardInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := Point{From: t.at, To: at, Unknown: len(shards) == 0}
	seen := make(map[int]counted, len(shards))
	var done [][]meter.Figures
	for i := range shards {
		s := &shards[i]
		if s.Problem != "" {
			p.Missing = append(p.Missing, s.Shard)
			continue
		}
		is := counted{s.Epoch, s.Began, byBehavior(s.Figures)}
		seen[s.Shard] = is
		if was, known := t.seen[s.Shard]; known {
			done = append(done, is.since(&was))
		} else if !t.at.IsZero() {
			p.Missing = append(p.Missing, s.Shard)
		}
	}
	first := t.at.IsZero()
	t.at, t.seen = at, seen
	if first || !p.From.Before(at) { // the clock was set back: the next point begins here
		return
	}
	p.Figures = meter.Sum(done...)
	t.points = append(t.points, p)
	old := 0
	for old < len(t.points) && !t.points[old].From.After(at.Add(-Window-Every)) || len(t.points)-old > maxPoints {
		old++
	}
	t.points = slices.Clone(t.points[old:])
}

func byBehavior(all []meter.Figures) []meter.Figures {
	all = slices.Clone(all)
	slices.SortFunc(all, func(x, y meter.Figures) int { return cmp.Compare(x.Behavior, y.Behavior) })
	return all
}

// since returns what was counted after an earlier sample, without behaviors that did nothing. The counters of another
// owner began at 0 after it.
func (c *counted) since(was *counted) (done []meter.Figures) {
	same := c.epoch == was.epoch && c.began == was.began
	for i := range c.figures {
		f := c.figures[i]
		at, found := slices.BinarySearchFunc(was.figures, f.Behavior, func(x meter.Figures, id string) int {
			return cmp.Compare(x.Behavior, id)
		})
		if same && found {
			f = less(f, &was.figures[at])
		}
		if f.Counts != [meter.TaskCounters]int64{} {
			done = append(done, f)
		}
	}
	return done
}

// less returns figures without those of an earlier time.
func less(f meter.Figures, was *meter.Figures) meter.Figures {
	for i := range f.Counts {
		f.Counts[i] = max(f.Counts[i]-was.Counts[i], 0)
	}
	for i := range f.Times {
		of, before := &f.Times[i], &was.Times[i]
		for j := range of.Buckets {
			of.Buckets[j] = max(of.Buckets[j]-before.Buckets[j], 0)
		}
		of.SumMs = max(of.SumMs-before.SumMs, 0)
	}
	return f
}

// Sum adds up the figures of points by behavior, and tells the time that they are of.
func Sum(points []Point) (all []meter.Figures, of time.Duration) {
	parts := make([][]meter.Figures, 0, len(points))
	for i := range points {
		if p := &points[i]; !p.Unknown {
			parts = append(parts, p.Figures)
			of += p.To.Sub(p.From)
		}
	}
	return meter.Sum(parts...), of
}

// Total adds up the figures of a point over all behaviors.
func (p *Point) Total() (all meter.Figures) {
	for i := range p.Figures {
		all.Plus(&p.Figures[i])
	}
	return all
}

// LeftOut returns the shards that are missing in one of the points, in order.
func LeftOut(points []Point) (shards []int) {
	for i := range points {
		shards = append(shards, points[i].Missing...)
	}
	slices.Sort(shards)
	return slices.Compact(shards)
}
