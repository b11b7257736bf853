package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/meter"
	"taskledger/schedule"
)

const (
	tickEvery  = 5 * time.Second        // between the instants at which all schedules fire
	besideFor  = 2 * time.Second        // before and after each of them, in which other tasks are counted
	countEvery = 100 * time.Millisecond // divides both
	halfADay   = 12                     // hours until the schedules fire that are watched while nothing happens
)

// SchedulesConfig says how many schedules fire at one instant, and how often.
type SchedulesConfig struct {
	Schedules int
	Ticks     int
	InFlight  int           // other tasks under way beside them
	Idle      time.Duration // for which schedules are watched that do not fire
}

// SchedulesResult holds the measured values.
type SchedulesResult struct {
	Schedules       int     `json:"schedules"`
	Ticks           int     `json:"ticks"`
	Runs            int     `json:"runs"`
	Early           int     `json:"early"`        // runs that were created before their tick
	LateP50Ms       float64 `json:"late_p50_ms"`  // from a tick until its run is created
	LatestMs        float64 `json:"latest_ms"`    // the same of the last run
	TasksPerS       float64 `json:"tasks_per_s"`  // other tasks, in the two seconds before a tick
	BesideTasksPerS float64 `json:"beside_per_s"` // in the two seconds from it on
	Ratio           float64 `json:"ratio"`        // median over ticks
	IdleEntries     int     `json:"idle_entries"` // that were written while no schedule fired
	IdleS           float64 `json:"idle_s"`
}

// SchedulesBounds are for checks; zero ones allow everything.
type SchedulesBounds struct {
	Late  time.Duration // of the last run of a tick
	Ratio float64       // of the rates of other tasks beside a tick and before it
}

// Within returns which bound is broken, or could not be measured. That no run is early and idle schedules write nothing has no
// other bound.
func (r SchedulesResult) Within(b SchedulesBounds) error {
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

// Schedules measures many schedules that fire at one instant beside a closed loop of noop tasks, as in Run, and what they write
// while they do not fire. It returns an error if a tick has not exactly one run.
func Schedules(ctx context.Context, cfg SchedulesConfig) (r SchedulesResult, err error) {
	r = SchedulesResult{Schedules: cfg.Schedules, Ticks: cfg.Ticks}
	s, err := startServers(ctx, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	a, b, err := startPair(ctx, s, max(cfg.InFlight, cfg.Schedules), [2]meter.Meter{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, a.close(), b.close()) }()
	begun := time.Now()
	far := schedule.Definition{Cron: fmt.Sprintf("0 0 %d * * ?", (begun.UTC().Hour()+halfADay)%24)}
	if err := setAll(ctx, a, cfg.Schedules, far); err != nil {
		return r, err
	}
	took := time.Since(begun)
	if err := watchIdle(ctx, a, cfg.Idle, &r); err != nil {
		return r, err
	}
	first := time.Now().Add(2*took + warmUp + 2*besideFor).Truncate(tickEvery).Add(tickEvery)
	last := first.Add(time.Duration(cfg.Ticks-1) * tickEvery)
	if err := setAll(ctx, a, cfg.Schedules, schedule.Definition{
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
	if err := loadBeside(ctx, a, cfg, first, last, &r); err != nil {
		return r, err
	}
	if err := awaitDecided(ctx, a); err != nil {
		return r, err
	}
	return r, readRuns(ctx, a, cfg, first, &r)
}

func scheduleName(i int) string { return fmt.Sprintf("schedule-%d", i) }

// setAll gives every schedule a definition.
func setAll(ctx context.Context, n *node, schedules int, d schedule.Definition) error {
	d.Behavior = builtin.Noop().ID()
	return inParallel(ctx, schedules, func(ctx context.Context, i int) error {
		_, _, err := n.Client.Schedules().Set(ctx, scheduleName(i), d, 0)
		return err
	})
}

// watchIdle counts the entries that are written in a time in which no schedule fires.
func watchIdle(ctx context.Context, n *node, d time.Duration, r *SchedulesResult) error {
	before, err := entries(ctx, n.Client)
	if err != nil {
		return err
	}
	begun := time.Now()
	if !pause(ctx, d) {
		return context.Cause(ctx)
	}
	r.IdleS = time.Since(begun).Seconds()
	after, err := entries(ctx, n.Client)
	r.IdleEntries = int(after - before)
	return err
}

// entries returns the number of entries of all shards.
func entries(ctx context.Context, c *engine.Client) (all uint64, err error) {
	shards, err := c.Operations().Shards(ctx)
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
func loadBeside(ctx context.Context, n *node, cfg SchedulesConfig, first, last time.Time, r *SchedulesResult) error {
	end := last.Add(besideFor)
	done, turn := newBeats(end), submitAndWait(n)
	if _, err := closedLoop(ctx, cfg.InFlight, time.Until(end), func(ctx context.Context, worker int) error {
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
	r.TasksPerS, r.BesideTasksPerS, r.Ratio = median(before), median(beside), median(ratios)
	return nil
}

// awaitDecided waits until every tick of all schedules is decided.
func awaitDecided(ctx context.Context, n *node) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stuckAfter, fmt.Errorf("not every tick was decided within %s", stuckAfter))
	defer cancel()
	for {
		left, err := undecided(ctx, n.Client.Schedules())
		if err != nil || left == 0 {
			return err
		}
		if !pause(ctx, askAgain) {
			return context.Cause(ctx)
		}
	}
}

// undecided counts the schedules that have a further tick.
func undecided(ctx context.Context, all engine.Schedules) (left int, err error) {
	const page = 100
	for after, more := "", true; more; {
		var some []schedule.Schedule
		if some, more, err = all.List(ctx, schedule.Filter{}, after, page); err != nil {
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
func readRuns(ctx context.Context, n *node, cfg SchedulesConfig, first time.Time, r *SchedulesResult) error {
	due := map[events.TaskID]time.Time{}
	for i := range cfg.Schedules {
		for tick := range cfg.Ticks {
			at := first.Add(time.Duration(tick) * tickEvery)
			due[events.TaskID(fmt.Sprintf("%s/%s%d", scheduleName(i), events.TickPrefix, at.UnixMilli()))] = at
		}
	}
	var late []time.Duration
	for ev, err := range n.Client.Ledger().Replay(ctx, ledger.ReplayOptions{Records: []events.Record{events.OfTask}}) {
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
	r.Runs, r.LateP50Ms = len(late), quantile(late, 0.5)
	r.LatestMs = quantile(late, 1)
	for _, d := range late {
		if d < 0 {
			r.Early++
		}
	}
	return nil
}
