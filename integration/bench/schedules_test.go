package bench_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/measure"
	"taskledger/internal/testkit"
	"taskledger/ledger"
	"taskledger/schedule"
)

const (
	tickEvery   = 5 * time.Second        // between the instants at which all schedules fire
	besideFor   = 2 * time.Second        // before and after each of them, in which other tasks are counted
	countEvery  = 100 * time.Millisecond // divides both
	halfADay    = 12                     // hours until the schedules fire that are watched while nothing happens
	decidedSoon = 30 * time.Second       // bounds the wait, after the last of the other tasks, for every tick
	lookAgain   = 10 * time.Millisecond
)

// BenchmarkSchedules measures how long after an instant many schedules that fire together at it have their runs, and
// how many noop tasks end in the two seconds from it on, for each in the two seconds before. It fails when a tick has
// no run or two, or one before its time. Before that it sets the schedules to a time that is half a day away, and fails
// when they have an entry of a journal written while nothing happens.
func BenchmarkSchedules(b *testing.B) {
	run(b, func(tb testing.TB) figures {
		count := testkit.Times(200, 1000)
		s := &scheduled{Pair: pair(tb, servers(tb, 0), count), count: count, ticks: testkit.Times(1, 5)}
		return s.measure(tb)
	})
}

// scheduled is a cluster of two nodes with so many schedules, which fire so often.
type scheduled struct {
	*measure.Pair
	count, ticks int
	first, last  time.Time
}

func (s *scheduled) measure(tb testing.TB) figures {
	begun := time.Now()
	s.set(tb, schedule.Definition{Cron: fmt.Sprintf("0 0 %d * * ?", (begun.UTC().Hour()+halfADay)%24)})
	took := time.Since(begun)
	f := newFigures(tb)
	before := s.entries(tb)
	pause(tb.Context(), lasts(time.Second, 5*time.Second))
	if n := s.entries(tb) - before; n > 0 {
		tb.Errorf("%d schedules that do not fire had %d entries written", s.count, n)
	}
	s.first = time.Now().Add(2*took + measure.WarmUp + 2*besideFor).Truncate(tickEvery).Add(tickEvery)
	s.last = s.first.Add(time.Duration(s.ticks-1) * tickEvery)
	s.set(tb, schedule.Definition{
		Cron:    fmt.Sprint("@every ", tickEvery),
		Overlap: schedule.Allow,
		Misfire: schedule.All,
		Start:   s.first,
		End:     s.last,
	})
	if time.Until(s.first) < besideFor+measure.WarmUp {
		tb.Fatalf("setting %d schedules took longer than the %s of the first time", s.count, took)
	}
	s.loadBeside(tb, f)
	s.awaitDecided(tb)
	late := s.late(tb)
	if late[0] < 0 {
		tb.Errorf("a run was created %s before its tick", -late[0])
	}
	f.is("runs", float64(len(late)))
	f.is("late-p50-ms", measure.Quantile(late, 0.5))
	// A thousand schedules fire at one instant: each has its run within 2 s, none early, and other tasks go on.
	f.atMost("latest-ms", measure.Quantile(late, 1), 2000)
	return f
}

func scheduleNamed(i int) string { return fmt.Sprintf("schedule-%d", i) }

// set gives every schedule a definition.
func (s *scheduled) set(tb testing.TB, d schedule.Definition) {
	tb.Helper()
	d.Behavior = noop.ID()
	check(tb, inParallel(tb.Context(), s.count, func(ctx context.Context, i int) error {
		_, _, err := s.Schedules().Set(ctx, scheduleNamed(i), d, 0)
		return err
	}))
}

// entries returns the number of entries of all shards.
func (s *scheduled) entries(tb testing.TB) (all uint64) {
	tb.Helper()
	for _, shard := range must(s.Operations().Shards(tb.Context()))(tb) {
		if shard.Problem != "" {
			tb.Fatalf("shard %d: %s", shard.Shard, shard.Problem)
		}
		all += shard.Entries
	}
	return all
}

// beats counts what is done in each countEvery.
type beats struct {
	begun time.Time
	done  []atomic.Int64
}

// newBeats counts until a time.
func newBeats(until time.Time) *beats {
	begun := time.Now().Truncate(countEvery)
	return &beats{begun, make([]atomic.Int64, 1+int(until.Sub(begun)/countEvery))}
}

func (b *beats) at(t time.Time) int { return int(t.Sub(b.begun) / countEvery) }

func (b *beats) count() {
	if i := b.at(time.Now()); i < len(b.done) {
		b.done[i].Add(1)
	}
}

// perSecond returns the rate from a time on, for besideFor.
func (b *beats) perSecond(from time.Time) float64 {
	var n int64
	for i := b.at(from); i < b.at(from.Add(besideFor)); i++ {
		n += b.done[i].Load()
	}
	return float64(n) / besideFor.Seconds()
}

// loadBeside runs a closed loop of noop tasks until the schedules have fired, and compares its rates.
func (s *scheduled) loadBeside(tb testing.TB, f figures) {
	end := s.last.Add(besideFor)
	done, turn := newBeats(end), measure.SubmitAndWait(s.Client)
	must(measure.Loop(tb.Context(), loadInFlight, time.Until(end), func(ctx context.Context, worker int) error {
		err := turn(ctx, worker)
		done.count()
		return err
	}))(tb)
	var before, beside, ratios []float64
	for tick := s.first; !tick.After(s.last); tick = tick.Add(tickEvery) {
		calm, busy := done.perSecond(tick.Add(-besideFor)), done.perSecond(tick)
		before, beside = append(before, calm), append(beside, busy)
		ratios = append(ratios, busy/max(calm, 1))
	}
	if measure.Median(before) == 0 {
		tb.Error("no other task ended before a tick")
	}
	f.is("task/s", measure.Median(before))
	f.is("beside-task/s", measure.Median(beside))
	f.atLeast("ratio", measure.Median(ratios), 0.5)
}

// awaitDecided waits until every tick of all schedules is decided.
func (s *scheduled) awaitDecided(tb testing.TB) {
	tb.Helper()
	for end := time.Now().Add(decidedSoon); s.undecided(tb) > 0; pause(tb.Context(), lookAgain) {
		if time.Now().After(end) {
			tb.Fatalf("not every tick was decided within %s", decidedSoon)
		}
	}
}

// undecided counts the schedules that have a further tick.
func (s *scheduled) undecided(tb testing.TB) (left int) {
	tb.Helper()
	const page = 100
	for after, more := "", true; more; {
		some, further, err := s.Schedules().List(tb.Context(), schedule.Filter{}, after, page)
		check(tb, err)
		for _, one := range some {
			after = one.Name
			if one.Next != 0 {
				left++
			}
		}
		more = further
	}
	return left
}

// late reads in the journals how long after each tick its run was created. A tick must have one run.
func (s *scheduled) late(tb testing.TB) (all []time.Duration) {
	tb.Helper()
	due := map[events.TaskID]time.Time{}
	for i := range s.count {
		for at := s.first; !at.After(s.last); at = at.Add(tickEvery) {
			due[events.TaskID(fmt.Sprintf("%s/%s%d", scheduleNamed(i), events.TickPrefix, at.UnixMilli()))] = at
		}
	}
	of := ledger.ReplayOptions{Records: []events.Record{events.OfTask}}
	for ev, err := range s.Ledger().Replay(tb.Context(), of) {
		check(tb, err)
		if ev.Kind() != events.KindCreated || events.ScheduledPrefix(ev.Task) == "" {
			continue
		}
		at, there := due[ev.Task]
		if !there {
			tb.Fatalf("run %s was created a second time, or has no tick", ev.Task)
		}
		delete(due, ev.Task)
		all = append(all, ev.At.Time().Sub(at))
	}
	for id := range due {
		tb.Fatalf("%d ticks have no run, among them %s", len(due), id)
	}
	slices.Sort(all)
	return all
}
