package schedule

import (
	"time"

	"taskledger/cron"
	"taskledger/events"
)

// Ticks are the times at which a schedule fires, between its start and its end. They are safe for concurrent use.
type Ticks struct {
	expression cron.Expression
	zone       *time.Location
	start, end events.Millis // 0 = without
}

// TicksOf returns the ticks of a plan, by the data of time zones that this process has. It returns a
// *store.InvalidError of cron or timezone. Without a cron expression there are none.
func TicksOf(p *events.SchedulePlan) (Ticks, error) { return TicksIn(p, time.LoadLocation) }

// TicksIn is TicksOf by the data of time zones that load has. load is called once, with the name of the zone.
func TicksIn(p *events.SchedulePlan, load func(zone string) (*time.Location, error)) (Ticks, error) {
	var expression cron.Expression // which never fires
	if p.Cron != "" {
		var err error
		if expression, err = cron.Parse(p.Cron); err != nil {
			return Ticks{}, invalid("cron", "%v", err)
		}
	}
	zone, err := load(p.Zone)
	if err != nil || p.Zone == "Local" || p.Zone == "" {
		return Ticks{}, invalid("timezone", "%q is not known, want a name of the IANA database, such as Europe/Berlin",
			events.Head(p.Zone, events.MaxZoneBytes))
	}
	return Ticks{
		expression: expression,
		zone:       zone,
		start:      p.Start,
		end:        p.End,
	}, nil
}

// Next returns the first tick after a time; 0 = there is none.
func (t Ticks) Next(after events.Millis) events.Millis {
	if t.start > 0 {
		after = max(after, t.start-1)
	}
	next, found := t.expression.Next(after.Time(), t.zone)
	if at := events.MillisOf(next); found && (t.end == 0 || at <= t.end) {
		return at
	}
	return 0
}

// Prev returns the last tick before a time; 0 = there is none.
func (t Ticks) Prev(before events.Millis) events.Millis {
	if t.end > 0 {
		before = min(before, t.end+1)
	}
	prev, found := t.expression.Prev(before.Time(), t.zone)
	if at := events.MillisOf(prev); found && at > 0 && at >= t.start {
		return at
	}
	return 0
}

// Offset returns how far the clocks of the zone are ahead of UTC at a time, in seconds.
func (t Ticks) Offset(at events.Millis) int64 {
	_, offset := at.Time().In(t.zone).Zone()
	return int64(offset)
}

// Fixed reports whether the ticks are at times that clocks show, and not at a distance from one another.
func (t Ticks) Fixed() bool { return !t.expression.Interval() }

// Between returns the ticks from one time to another, both inclusive, at most so many; more reports that there are
// others.
func (t Ticks) Between(from, to events.Millis, most int) (ticks []events.Millis, more bool) {
	for at := t.Next(from - 1); at != 0 && at <= to; at = t.Next(at) {
		if len(ticks) == most {
			return ticks, true
		}
		ticks = append(ticks, at)
	}
	return ticks, false
}
