package check

import (
	"fmt"
	"strings"
	"time"

	"taskledger/events"
)

const (
	// correctEvery is the least time from one correction of the next tick to another.
	correctEvery = events.Millis(time.Hour / time.Millisecond)
	// caughtUp counts the newest of the undecided ticks that have their runs where the misfire is all.
	caughtUp = 100
	// mostActive bounds the runs of a schedule that have not ended.
	mostActive = 1000
	// lately is the age of what an owner knows of a tick, and goes by: a newer one may be due by then.
	lately = 10_000
	// No decision within leastGrace is late, whatever the grace.
	leastGrace = 1000
)

// judgeTick says what forbids a decision.
func (p *plan) judgeTick(ev *events.Event, b *events.Ticked, name string, there func(events.TaskID) bool) string {
	switch b.Decision {
	case events.TickCorrected:
		return p.judgeCorrection(ev, b)
	case events.TickFilled, events.TickNotFilled:
		return p.judgeFill(b, name, there)
	}
	d, from, to := &p.def.Plan, b.From, b.To
	switch {
	case p.next == 0 || from != p.next || to < from || b.Next != 0 && b.Next <= to:
		return fmt.Sprintf("ticks %d to %d are decided before %d, and the next one is %d", from, to, b.Next, p.next)
	case p.paused && b.Decision != events.TickMissed:
		return "a tick is decided while the schedule is paused"
	case to > ev.At:
		return fmt.Sprintf("tick %d is decided at %d, before its time", to, ev.At)
	case from < d.Start || d.End != 0 && max(to, b.Next) > d.End:
		return fmt.Sprintf("ticks %d to %d, and %d next, of a schedule from %d to %d", from, to, b.Next, d.Start, d.End)
	}
	if p.goesBack(b, p.shownUntil(b), to) {
		const again = "tick %d comes, %d s from UTC, when clocks show what they have shown for ticks %d to %d"
		return fmt.Sprintf(again, b.Next, b.NextOffset, from, to)
	}
	if period := periodOf(d); period != 0 {
		next := to + period
		if d.End != 0 && next > d.End {
			next = 0
		}
		if (to-from)%period != 0 || b.Next != next {
			const gap = "ticks %d to %d are decided before %d, and there is one each %d ms"
			return fmt.Sprintf(gap, from, to, b.Next, period)
		}
	}
	return p.judgeDecision(ev, b, name, there)
}

// judgeDecision says what is not true of the decision and its cause.
func (p *plan) judgeDecision(ev *events.Event, b *events.Ticked, name string, there func(events.TaskID) bool) string {
	d := &p.def.Plan
	due := b.Next != 0 && b.Next <= ev.At // a newer tick is undecided, too
	run := runOf(d.Names, name, events.RunOfTick, b.From, 0)
	taken := there(run)
	told := false
	switch {
	case b.Decision == events.TickCreated && p.active > 0 && d.Overlap != events.OverlapAllow:
		return fmt.Sprintf("a tick has a run, and %d runs have not ended", p.active)
	case p.explained(b.From) && b.Decision != events.TickSkipped && b.Cause != events.TickPaused:
		const explained = "tick %d is decided so, and came while a run had not ended, until %d, or in a pause, until %d"
		return fmt.Sprintf(explained, b.From, p.busyUntil, p.pausedUntil)
	case b.Decision == events.TickCreated && d.Misfire == events.MisfireSkip && ev.At-b.From > max(d.Grace, leastGrace)+d.Jitter:
		return fmt.Sprintf("tick %d has a run at %d, too late", b.From, ev.At)
	case b.Decision == events.TickCreated && d.Misfire != events.MisfireAll && b.From >= max(p.busyFrom, p.pausedFrom) &&
		periodOf(d) > 0 && b.From+periodOf(d)+d.Jitter+lately <= ev.At && (d.End == 0 || b.From+periodOf(d) <= d.End):
		return fmt.Sprintf("tick %d has a run at %d, and is not the newest", b.From, ev.At)
	case b.Decision == events.TickCreated:
		told = b.Cause == events.TickNoCause && b.Run == run && !taken && p.active < mostActive
	case b.Decision == events.TickSkipped && b.Cause == events.TickOverlap && d.Overlap == events.OverlapForbid:
		told = b.To <= p.busyUntil || p.active > 0
	case b.Decision == events.TickSkipped && b.Cause == events.TickOverlap && d.Overlap == events.OverlapReplace:
		told = b.From <= p.busyUntil && due
	case b.Decision == events.TickSkipped && b.Cause == events.TickTaken:
		told = b.From == b.To && taken
	case b.Decision == events.TickSkipped && b.Cause == events.TickTooMany:
		told = p.active >= mostActive
	case b.Decision == events.TickMissed && b.Cause == events.TickPaused:
		told = b.To <= p.pausedUntil || p.paused
	case b.Decision == events.TickMissed && b.Cause == events.TickLate:
		told = d.Misfire == events.MisfireSkip && ev.At-b.To > d.Grace
	case b.Decision == events.TickMissed && b.Cause == events.TickOld:
		told = due && (d.Misfire != events.MisfireAll || b.Next+(caughtUp-1)*periodOf(d) <= ev.At)
	}
	if told {
		return ""
	}
	const untrue = "decision %d, cause %d, of ticks %d to %d at %d: runs that had not ended: %d, and until %d; " +
		"paused %t, and until %d; a task of the id: %t; overlap %d, misfire %d"
	return fmt.Sprintf(untrue, b.Decision, b.Cause, b.From, b.To, ev.At, p.active, p.busyUntil, p.paused, p.pausedUntil,
		taken, d.Overlap, d.Misfire)
}

// explained reports whether a tick has no run because it was due while a run of a schedule that forbids overlaps had not
// ended, or in a pause. Ticks that catch up may have one all the same.
func (p *plan) explained(tick events.Millis) bool {
	latest := tick + p.def.Plan.Jitter // it is due by then
	busy := p.def.Plan.Overlap == events.OverlapForbid && p.busyFrom <= tick && latest <= p.busyUntil
	return !p.all && (busy || p.pausedFrom <= tick && latest <= p.pausedUntil)
}

// judgeCorrection says what forbids a correction of the next tick.
func (p *plan) judgeCorrection(ev *events.Event, b *events.Ticked) string {
	switch {
	case b.Next != 0 && b.Next <= p.decided:
		return fmt.Sprintf("the next tick is corrected to %d, and %d was decided", b.Next, p.decided)
	case p.next == 0 || b.Next == p.next:
		return fmt.Sprintf("the next tick, %d, is corrected to %d", p.next, b.Next)
	case p.next+p.def.Plan.Jitter <= ev.At:
		return fmt.Sprintf("the next tick, %d, is corrected when it is due, at %d", p.next, ev.At)
	case p.goesBack(b, p.shown, p.decided):
		const again = "the next tick is corrected to %d, %d s from UTC, when clocks show what they have shown for tick %d"
		return fmt.Sprintf(again, b.Next, b.NextOffset, p.decided)
	case p.corrected != 0 && ev.At < p.corrected+correctEvery:
		return fmt.Sprintf("the next tick is corrected at %d, and was at %d", ev.At, p.corrected)
	}
	return ""
}

// shownUntil returns the latest date and time that the clocks of the zone show at the ticks of a decision: by the data
// of who found the first of them, and of who decides.
func (p *plan) shownUntil(b *events.Ticked) events.Millis {
	return max(clocks(b.From, p.nextOffset), clocks(b.To, b.ToOffset))
}

// clocks returns what clocks show at a time that are so many seconds ahead of UTC.
func clocks(at events.Millis, offset int64) events.Millis { return at + events.Millis(1000*offset) }

// goesBack reports whether the next tick is at a date and time that clocks have shown, 0 for none, when tick last was
// decided, and not because the clocks of the zone went back since.
func (p *plan) goesBack(b *events.Ticked, shown, last events.Millis) bool {
	d := &p.def.Plan
	if shown == 0 || b.Next == 0 || clocks(b.Next, b.NextOffset) > shown || strings.HasPrefix(d.Cron, "@every ") {
		return false
	}
	zone, err := time.LoadLocation(d.Zone)
	if err != nil {
		return false
	}
	_, before := last.Time().In(zone).Zone()
	_, after := b.Next.Time().In(zone).Zone()
	return before == after
}

// judgeFill says what forbids a decision of a backfill.
func (p *plan) judgeFill(b *events.Ticked, name string, there func(events.TaskID) bool) string {
	f := p.fill
	if f == nil || f.Ticks == 0 || f.From == 0 || b.From != f.From || b.To != b.From ||
		b.Next != 0 && (b.Next <= b.To || b.Next > f.To) {
		return fmt.Sprintf("tick %d of a backfill is decided, which is %+v", b.From, f)
	}
	names := p.def.Plan.Names
	id := runOf(names, name, events.RunOfFill, b.From, 0)
	if there(id) { // an earlier backfill had the tick
		id = runOf(names, name, events.RunOfFill, b.From, p.filledSince)
	}
	filled, waits := b.Decision == events.TickFilled, p.active
	if p.def.Plan.Overlap == events.OverlapAllow {
		waits = p.filling
	}
	switch {
	case waits > 0:
		return fmt.Sprintf("a tick of a backfill is decided, and %d runs have not ended", waits)
	case filled == there(id) || filled && b.Run != id || !filled && b.Cause != events.TickTaken:
		return fmt.Sprintf("a tick of a backfill has run %q, and a task of its id is there: %t", b.Run, there(id))
	}
	return ""
}

// periodOf returns the time from each tick of a schedule to the next one, as far as that is plain to see; 0 = it is
// not.
func periodOf(p *events.SchedulePlan) events.Millis {
	if p.Zone != "UTC" {
		return 0
	}
	if every, is := strings.CutPrefix(p.Cron, "@every "); is {
		period, err := time.ParseDuration(every)
		if err != nil {
			return 0
		}
		return events.Millis(period.Milliseconds())
	}
	second, is := strings.CutSuffix(p.Cron, " * * * * ?")
	if second == "*" && is {
		return 1000
	}
	var first, each events.Millis
	_, err := fmt.Sscanf(second, "%d/%d", &first, &each)
	if !is || err != nil || each <= 0 || 60%each != 0 || first >= each {
		return 0
	}
	return each * 1000
}
