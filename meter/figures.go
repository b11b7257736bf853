package meter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Figures holds counts and times of the tasks of one behavior, from the commits of owners since they took their shards
// over.
type Figures struct {
	Behavior string // or Other
	Counts   [TaskCounters]int64
	Times    [TaskHistograms]Distribution
}

// timeBounds are the upper ends of the buckets of times, in milliseconds.
var timeBounds = [...]int64{1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_600_000}

// Distribution counts times by their length.
type Distribution struct {
	Buckets [len(timeBounds) + 1]int64 // how many times were within a bound and above the one before; the last: above all
	SumMs   int64                      // at most 2^53: a sum stays there
}

func seconds(ms []int64) []float64 {
	bounds := make([]float64, len(ms))
	for i := range ms {
		bounds[i] = float64(ms[i]) / 1000
	}
	return bounds
}

// Add counts a time in milliseconds.
func (d *Distribution) Add(ms int64) {
	i := 0
	for i < len(timeBounds) && ms > timeBounds[i] {
		i++
	}
	d.Buckets[i]++
	d.SumMs += min(ms, maxNumber-d.SumMs)
}

// N returns the number of counted times.
func (d *Distribution) N() (n int64) {
	for _, in := range d.Buckets {
		n += in
	}
	return n
}

// Quantile estimates a quantile, as if times were spread evenly over each bucket; 0 of none. What is above all
// bounds counts as the last one.
func (d *Distribution) Quantile(q float64) time.Duration {
	rank, below := q*float64(d.N()), 0.0
	for i, in := range d.Buckets {
		if in == 0 || below+float64(in) < rank {
			below += float64(in)
			continue
		}
		if i == len(timeBounds) {
			break
		}
		var low int64
		if i > 0 {
			low = timeBounds[i-1]
		}
		part := max(rank-below, 0) / float64(in)
		return time.Duration((float64(low) + part*float64(timeBounds[i]-low)) * float64(time.Millisecond))
	}
	if d.N() == 0 {
		return 0
	}
	return time.Duration(timeBounds[len(timeBounds)-1]) * time.Millisecond
}

// Plus adds the figures of other shards.
func (f *Figures) Plus(other *Figures) {
	for i := range f.Counts {
		f.Counts[i] += other.Counts[i]
	}
	for i := range f.Times {
		for j := range f.Times[i].Buckets {
			f.Times[i].Buckets[j] += other.Times[i].Buckets[j]
		}
		f.Times[i].SumMs += other.Times[i].SumMs
	}
}

// Sum adds up the figures of shards by behavior, and orders them by its id.
func Sum(shards ...[]Figures) []Figures {
	var all []Figures
	for _, shard := range shards {
		for i := range shard {
			at, found := slices.BinarySearchFunc(all,
				shard[i].Behavior, func(f Figures, id string) int { return cmp.Compare(f.Behavior, id) })
			if found {
				all[at].Plus(&shard[i])
			} else {
				all = slices.Insert(all, at, shard[i])
			}
		}
	}
	return all
}

// width is the number of values in the Figures of a behavior.
const width = int(TaskCounters) + int(TaskHistograms)*(len(timeBounds)+2)

// Pack writes figures as two flat lists, for messages, which have no lists of lists.
func Pack(all []Figures) (behaviors []string, numbers []int64) {
	numbers = make([]int64, 0, len(all)*width)
	for i := range all {
		f := &all[i]
		behaviors = append(behaviors, f.Behavior)
		numbers = append(numbers, f.Counts[:]...)
		for j := range f.Times {
			numbers = append(append(numbers, f.Times[j].Buckets[:]...), f.Times[j].SumMs)
		}
	}
	return behaviors, numbers
}

// maxNumber bounds a figure so that sums over all shards cannot overflow.
const maxNumber = 1 << 53

// Unpack reads the form that Pack writes, and refuses figures that no owner can report.
func Unpack(behaviors []string, numbers []int64) ([]Figures, error) {
	if len(behaviors) > MaxBehaviors+1 || len(numbers) != len(behaviors)*width {
		return nil, fmt.Errorf("%d numbers of %d behaviors, want %d of each of %d at most",
			len(numbers), len(behaviors), width, MaxBehaviors+1)
	}
	if slices.ContainsFunc(numbers, func(n int64) bool { return n < 0 || n > maxNumber }) {
		return nil, errors.New("a figure is below 0 or too large")
	}
	all := make([]Figures, len(behaviors))
	for i := range all {
		f := &all[i]
		f.Behavior = behaviors[i]
		numbers = numbers[copy(f.Counts[:], numbers):]
		for j := range f.Times {
			numbers = numbers[copy(f.Times[j].Buckets[:], numbers):]
			f.Times[j].SumMs, numbers = numbers[0], numbers[1:]
		}
	}
	return all, nil
}
