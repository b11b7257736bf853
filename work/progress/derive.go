package progress

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"taskledger/events"
	"taskledger/task"
)

// StallAfter is the time without a bucket that ends, in milliseconds, after which a partition has stalled.
const StallAfter events.Millis = 10 * 60 * 1000

// Facts hold what Derive needs to know of a work besides its fields.
type Facts struct {
	Planned   bool // false = the run was reset
	Suspended bool
	Final     bool // the run of the task has ended, and nobody has asked for another one
	Cleared   bool // its counters were reset since it has: none of them ends it any more
	Current   int  // number of the last partition that has started; 0 = none
	// BusyFrom is the time since which buckets of the current partition are open; 0 = none is.
	BusyFrom events.Millis
	// RateFrom is the time since which a stream has processed so many changes: Processed. 0 = nothing tells it.
	RateFrom  events.Millis
	Processed uint64

	again bool // the run has buckets that had failed items alone, so that the items that are expected are not its own
}

// Derive fills in what follows from the other fields, and from f.
func (w *Work) Derive(f Facts) {
	w.State, f.again = w.state(&f), w.FailedOnly
	w.Items, w.WallClockMs = Items{}, 0
	for i := range w.Partitions {
		p := &w.Partitions[i]
		p.derive(partitionState(w.State, i+1, &f, p.EndedAt), w.At, &f)
		w.trip(p, &f)
		w.add(p)
	}
	w.Progress = w.words(f.Current)
	if w.Stream != nil {
		w.Stream.follow(w.At, f.RateFrom, f.Processed)
		w.stall(f.Current)
		w.compare()
	}
}

// stall tells that a stream has stalled if changes wait and none is processed. One that nothing comes to is quiet: its
// source may have no change, or hang.
func (w *Work) stall(current int) {
	if current == 0 || current > len(w.Partitions) || w.Partitions[current-1].StalledSince == 0 {
		return
	}
	p := &w.Partitions[current-1]
	since := max(p.StalledSince, w.Stream.MovedAt, w.Stream.Lag.Oldest)
	switch p.StalledSince = 0; {
	case w.At-since < StallAfter:
	case w.Stream.Lag.Open > 0:
		p.StalledSince = since
	default:
		w.Stream.QuietSince = since
	}
}

// state returns the state of the work.
func (w *Work) state(f *Facts) State {
	last := len(w.Partitions)
	switch {
	case !f.Planned:
		return NotStarted
	case f.Final && w.Status == task.Failure: // it may have been cancelled after its last bucket
		return Failed
	case last > 0 && f.Current == last && w.Partitions[last-1].EndedAt != 0:
		return Complete
	case f.Suspended:
		return Suspended
	case f.Current == 0:
		return NotStarted
	}
	return InProgress
}

// partitionState returns the state of a partition, by its number: the one under way shares that of the work.
func partitionState(of State, number int, f *Facts, ended events.Millis) State {
	switch {
	case !f.Planned || number > f.Current:
		return NotStarted
	case number < f.Current || ended != 0:
		return Complete
	}
	return of
}

func (p *Partition) derive(is State, now events.Millis, f *Facts) {
	p.State = is
	p.Percent, p.TimeLeftMs, p.StalledSince = nil, nil, 0
	p.ItemsPerSecond = rate(p.Items.processed(), p.WallClockMs)
	p.BucketsPerSecond = rate(p.Buckets.Done, p.WallClockMs)
	underWay := is != NotStarted && is != Complete
	switch {
	case is == Complete:
		p.Percent = percent(1, 1)
	case is == NotStarted:
		p.Percent = percent(0, 1)
	case p.Buckets.Total > 1 || p.Buckets.Done == p.Buckets.Total || f.again:
		p.Percent = percent(p.Buckets.Done, p.Buckets.Total)
	case p.countsItems():
		p.Percent = percent(p.Items.InOpen, *p.Items.Expected)
	}
	if is == InProgress {
		p.TimeLeftMs = p.timeLeft(f)
	}
	if from := max(p.LastBucketAt, f.BusyFrom); underWay && p.Buckets.Open > 0 && now-from >= StallAfter {
		p.StalledSince = from
	}
	if p.BeginsSince != 0 && now-p.BeginsSince >= StallAfter {
		p.StalledSince = p.BeginsSince
	}
	p.Progress = p.words(f)
}

// countsItems reports whether the items of a partition of one bucket tell how far it has come.
func (p *Partition) countsItems() bool {
	return p.Items.Expected != nil && *p.Items.Expected > 0 && p.Items.InOpen > 0
}

// percent returns how many hundredths a part makes of a whole, in steps of 0.1, not rounded up: less than the whole is
// never 100. More than the whole is: a set may grow after it was counted.
func percent(part, whole uint64) *float64 {
	of := 100.0
	if part < whole {
		high, low := bits.Mul64(part, 1000)
		tenths, _ := bits.Div64(high, low, whole)
		of = float64(tenths) / 10
	}
	return &of
}

// rate returns a number by the second, rounded to three digits; nil = nothing tells it.
func rate(n uint64, ms int64) *float64 {
	if n == 0 || ms <= 0 {
		return nil
	}
	is := rounded(float64(n) * 1000 / float64(ms))
	return &is
}

// rounded keeps three digits.
func rounded(x float64) float64 {
	text := strconv.FormatFloat(x, 'g', 3, 64)
	x, _ = strconv.ParseFloat(text, 64) // it reads what was just written
	return x
}

// timeLeft returns the wall clock that the rest takes at the rate so far; nil = nothing tells it.
func (p *Partition) timeLeft(f *Facts) *int64 {
	part, whole := p.Buckets.Done, p.Buckets.Total
	if whole == 1 && !f.again && p.countsItems() {
		part, whole = p.Items.InOpen, *p.Items.Expected
	}
	if part == 0 || p.WallClockMs <= 0 {
		return nil
	}
	left := int64(0)
	if part < whole {
		left = int64(min(float64(p.WallClockMs)*(float64(whole-part)/float64(part)), math.MaxInt64/2))
	}
	return &left
}

// words tells how far a partition has come.
func (p *Partition) words(f *Facts) string {
	switch {
	case p.BeginsSince != 0:
		return "beginning"
	case p.State == NotStarted:
		return "not started"
	case p.State == Complete:
		return "complete"
	case p.Percent == nil:
		return strings.ReplaceAll(string(p.State), "-", " ")
	case p.Buckets.Total == 1 && !f.again:
		return fmt.Sprintf("%s (%d of %d items)", ofHundred(*p.Percent), p.Items.InOpen, *p.Items.Expected)
	}
	return fmt.Sprintf("%s (%d of %d buckets)", ofHundred(*p.Percent), p.Buckets.Done, p.Buckets.Total)
}

// ofHundred writes percents: "12.5 %", "23 %".
func ofHundred(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) + " %" }

// words tells how far the work has come, whose partition of a number was the last to start.
func (w *Work) words(current int) string {
	switch n := len(w.Partitions); {
	case w.State == Complete:
		return "complete"
	case current == 0 && n > 0 && w.Partitions[0].BeginsSince != 0:
		return "beginning"
	case current == 0 || current > n:
		return "not started"
	case n == 1:
		return w.Partitions[0].Progress
	default:
		in := fmt.Sprintf("in %d/%d", current, n)
		if p := w.Partitions[current-1].Percent; p != nil {
			return ofHundred(*p) + " " + in
		}
		return in
	}
}

// add counts a partition in the work.
func (w *Work) add(p *Partition) {
	w.WallClockMs += p.WallClockMs
	w.Items.Done += p.Items.Done
	w.Items.Failed += p.Items.Failed
	w.Items.Skipped += p.Items.Skipped
	w.Items.InOpen += p.Items.InOpen
}

// ofRules begins the names of the counters of rules, as workledger.FailuresPrefix does.
const ofRules = "failures:"

// trip notes which threshold has ended the work, or which rule: its counter counts the failure that has.
func (w *Work) trip(p *Partition, f *Facts) {
	for i := range p.Thresholds {
		t := &p.Thresholds[i]
		t.Mode = p.Mode
		if t.Tripped = false; f.Cleared || w.State != Failed || w.Error == nil || w.Error.Properties["partition"] != p.ID {
			continue
		}
		rule, ofRule := strings.CutPrefix(t.Counter, ofRules)
		switch {
		case ofRule && w.Error.Code == events.CodeStopped && w.Error.Properties["rule"] == rule && t.Count+1 >= t.Limit:
			t.Tripped, t.Count = true, t.Limit
		case w.Error.Code == events.CodeThreshold && w.Error.Properties["counter"] == t.Counter:
			t.Tripped = t.Count >= t.Limit
		}
	}
}
