// Package overschedules measures schedules that fire together, beside other tasks.
package overschedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/behaviors/builtin"
	"taskledger/cmd/node/internal/bench"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/schedule"
)

const (
	tickEvery  = 5 * time.Second        // between the instants at which all schedules fire
	besideFor  = 2 * time.Second        // before and after each of them, in which other tasks are counted
	countEvery = 100 * time.Millisecond // divides both
	halfADay   = 12                     // hours until the schedules fire that are watched while nothing happens
	warmUp     = 500 * time.Millisecond // in which the other tasks come to their speed
	setters    = 256                    // schedules that are set side by side
	lookAgain  = 10 * time.Millisecond
	doneWithin = 30 * time.Second // after the last of the other tasks every tick is decided
)

// Config says how many schedules fire at one instant, and how often.
type Config struct {
	Schedules int
	Ticks     int
	InFlight  int           // other tasks under way beside them
	Idle      time.Duration // for which schedules are watched that do not fire
}

// Result holds the measured values.
type Result struct {
	Schedules       int     `json:"schedules"`
	Ticks           int     `json:"ticks"`
	Runs            int     `json:"runs"`
	Early           int     `json:"early"`        // runs that were created before their tick
	LateP50Ms       float64 `json:"late_p50_ms"`  // from a tick until its run is created
	LatestMs        float64 `json:"latest_ms"`    // the same of the last run
	TasksPerS       float64 `json:"tasks_per_s"`  // other tasks, in the two seconds before a tick
	BesideTasksPerS float64 `json:"beside_per_s"` // in the two seconds from it on
	Ratio           float64 `json:"ratio"`        // median over ticks
	IdleEntries     int     `json:"idle_entries"` // entries that were written while no schedule fired
	IdleS           float64 `json:"idle_s"`
}

// Bounds are for checks; zero ones allow everything.
type Bounds struct {
	Late  time.Duration // how late the last run of a tick may be
	Ratio float64       // the least one of the rates of other tasks, beside a tick and before it
}

// Within returns which bound is broken, or could not be measured. That no run is early and idle schedules write
// nothing has no other bound.
func (r Result) Within(b Bounds) error {
	switch {
	case r.Runs == 0 || r.TasksPerS == 0:
		return fmt.Errorf("%d runs beside %.0f tasks/s are too few to tell", r.Runs, r.TasksPerS)
	case r.Early > 0:
		return fmt.Errorf("%d runs were created before their tick", r.Early)
	case r.IdleEntries > 0:
		return fmt.Errorf("%d schedules that do not fire had %d entries written", r.Schedules, r.IdleEntries)
	case b.Late > 0 && r.LatestMs > float64(b.Late)/float64(time.Millisecond):
		return fmt.Errorf("the last run of a tick was created %.0f ms after it, more than the %s allowed", r.LatestMs, b.Late)
	case r.Ratio < b.Ratio:
		return fmt.Errorf("ratio %.2f is below the %.2f asked for", r.Ratio, b.Ratio)
	}
	return nil
}

// Run measures many schedules that fire at one instant beside a closed loop of noop tasks, and what they write
// while they do not fire. It returns an error if a tick has not exactly one run.
func Run(ctx context.Context, cfg Config) (r Result, err error) {
	r = Result{Schedules: cfg.Schedules, Ticks: cfg.Ticks}
	p, err := bench.StartPair(ctx, max(cfg.InFlight, cfg.Schedules))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	begun := time.Now()
	far := schedule.Definition{Cron: fmt.Sprintf("0 0 %d * * ?", (begun.UTC().Hour()+halfADay)%24)}
	if err := setAll(ctx, p, cfg.Schedules, far); err != nil {
		return r, err
	}
	took := time.Since(begun)
	if err := watchIdle(ctx, p, cfg.Idle, &r); err != nil {
		return r, err
	}
	first := time.Now().Add(2*took + warmUp + 2*besideFor).Truncate(tickEvery).Add(tickEvery)
	last := first.Add(time.Duration(cfg.Ticks-1) * tickEvery)
	if err := setAll(ctx, p, cfg.Schedules, schedule.Definition{
		Cron:    fmt.Sprint("@every ", tickEvery),
		Overlap: schedule.Allow,
		Misfire: schedule.All,
		Start:   first,
		End:     last,
	}); err != nil {
		return r, err
	}
	if time.Until(first) < besideFor+warmUp {
		return r, fmt.Errorf("setting %d schedules took longer than the %s of the first time", cfg.Schedules, took)
	}
	if err := loadBeside(ctx, p, cfg, first, last, &r); err != nil {
		return r, err
	}
	if err := awaitDecided(ctx, p); err != nil {
		return r, err
	}
	return r, readRuns(ctx, p, cfg, first, &r)
}

func nameOf(i int) string { return fmt.Sprintf("schedule-%d", i) }

// setAll gives every schedule a definition.
func setAll(ctx context.Context, p *bench.Pair, schedules int, d schedule.Definition) error {
	d.Behavior = builtin.Noop().ID()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(setters)
	for i := range schedules {
		g.Go(func() error {
			_, _, err := p.Schedules().Set(ctx, nameOf(i), d, 0)
			return err
		})
	}
	return g.Wait()
}

// watchIdle counts the entries that are written in a time in which no schedule fires.
func watchIdle(ctx context.Context, p *bench.Pair, d time.Duration, r *Result) error {
	before, err := entries(ctx, p)
	if err != nil {
		return err
	}
	begun := time.Now()
	if !pause(ctx, d) {
		return context.Cause(ctx)
	}
	r.IdleS = time.Since(begun).Seconds()
	after, err := entries(ctx, p)
	r.IdleEntries = int(after - before)
	return err
}

// entries returns the number of entries of all shards.
func entries(ctx context.Context, p *bench.Pair) (all uint64, err error) {
	shards, err := p.Operations().Shards(ctx)
	for _, s := range shards {
		if s.Problem != "" {
			return 0, fmt.Errorf("shard %d: %s", s.Shard, s.Problem)
		}
		all += s.Entries
	}
	return all, err
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
	for i := range b.done[b.at(from):b.at(from.Add(besideFor))] {
		n += b.done[b.at(from)+i].Load()
	}
	return float64(n) / besideFor.Seconds()
}

// loadBeside runs a closed loop of noop tasks until the schedules have fired, and compares its rates.
func loadBeside(ctx context.Context, p *bench.Pair, cfg Config, first, last time.Time, r *Result) error {
	end := last.Add(besideFor)
	done, turn := newBeats(end), p.SubmitAndWait()
	if _, _, _, err := bench.Loop(ctx, cfg.InFlight, time.Until(end), func(ctx context.Context, worker int) error {
		err := turn(ctx, worker)
		done.count()
		return err
	}); err != nil {
		return err
	}
	var before, beside, ratios []float64
	for tick := first; !tick.After(last); tick = tick.Add(tickEvery) {
		calm, busy := done.perSecond(tick.Add(-besideFor)), done.perSecond(tick)
		before, beside = append(before, calm), append(beside, busy)
		ratios = append(ratios, busy/max(calm, 1))
	}
	r.TasksPerS, r.BesideTasksPerS, r.Ratio = bench.Median(before), bench.Median(beside), bench.Median(ratios)
	return nil
}

// awaitDecided waits until every tick of all schedules is decided.
func awaitDecided(ctx context.Context, p *bench.Pair) error {
	late := fmt.Errorf("not every tick was decided within %s", doneWithin)
	ctx, cancel := context.WithTimeoutCause(ctx, doneWithin, late)
	defer cancel()
	for {
		left, err := undecided(ctx, p)
		if err != nil || left == 0 {
			return err
		}
		if !pause(ctx, lookAgain) {
			return context.Cause(ctx)
		}
	}
}

// undecided counts the schedules that have a further tick.
func undecided(ctx context.Context, p *bench.Pair) (left int, err error) {
	const page = 100
	for after, more := "", true; more; {
		var some []schedule.Schedule
		if some, more, err = p.Schedules().List(ctx, schedule.Filter{}, after, page); err != nil {
			return 0, err
		}
		for _, s := range some {
			after = s.Name
			if s.Next != 0 {
				left++
			}
		}
	}
	return left, nil
}

// readRuns reads in the journals when the run of each tick was created.
func readRuns(ctx context.Context, p *bench.Pair, cfg Config, first time.Time, r *Result) error {
	due := map[events.TaskID]time.Time{}
	for i := range cfg.Schedules {
		for tick := range cfg.Ticks {
			at := first.Add(time.Duration(tick) * tickEvery)
			due[events.TaskID(fmt.Sprintf("%s/%s%d", nameOf(i), events.TickPrefix, at.UnixMilli()))] = at
		}
	}
	var late []time.Duration
	for ev, err := range p.Ledger().Replay(ctx, ledger.ReplayOptions{Records: []events.Record{events.OfTask}}) {
		if err != nil {
			return fmt.Errorf("read the journals: %w", err)
		}
		if ev.Kind() != events.KindCreated || events.ScheduledPrefix(ev.Task) == "" {
			continue
		}
		at, there := due[ev.Task]
		if !there {
			return fmt.Errorf("run %s was created a second time, or has no tick", ev.Task)
		}
		delete(due, ev.Task)
		late = append(late, ev.At.Time().Sub(at))
	}
	for id := range due {
		return fmt.Errorf("%d ticks have no run, among them %s", len(due), id)
	}
	slices.Sort(late)
	r.Runs, r.LateP50Ms, r.LatestMs = len(late), inMillis(late[len(late)/2]), inMillis(late[len(late)-1])
	for _, d := range late {
		if d < 0 {
			r.Early++
		}
	}
	return nil
}

func inMillis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// pause waits, and returns false if ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
