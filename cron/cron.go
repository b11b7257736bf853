// Package cron reads expressions that say when something is to happen, and finds those times. It reads no clock.
//
// An expression is one of Quartz 2.3.2: six or seven fields with spaces between them, letters of either case.
//
//	field         values            also
//	second        0-59
//	minute        0-59
//	hour          0-23
//	day-of-month  1-31              ? L L-3 LW L-3W 15W
//	month         1-12, JAN-DEC
//	day-of-week   1-7, SUN-SAT      ? L FRIL 6L FRI#3 6#3
//	year          1970-2199         may be left out
//
//	*        every value
//	?        whatever the other field for days says; exactly one of the two is a ?
//	1,15     a list of values, ranges and steps
//	9-17     a range; 22-2 and FRI-MON go on at the beginning, years do not
//	5/15     every 15 values from 5 to the last one; */15 and /15 begin at the first one, 10-40/15 ends at 40
//	L        day-of-month: the last day of the month; day-of-week: SAT
//	L-3      the day 3 days before the last one; 0 to 30
//	15W      the day of Monday to Friday nearest to the 15th, in the same month; 31W leaves out shorter months
//	LW       the same for the last day, L-3W for the one 3 days before
//	FRIL     the last Friday of the month
//	FRI#3    the third Friday of the month; 1 to 5
//
// Forms with L, W and # stand alone, not in a list. What Quartz accepts and then passes over is refused here: text
// after the year, letters after a name, a step of 0, a step after a name, an empty element of a list.
//
// Other words for such expressions are @yearly = @annually, @monthly, @weekly, @daily = @midnight and @hourly.
// "@every 90s" fires at the multiples of a duration since 1970-01-01 00:00 UTC, whatever the zone: whole seconds,
// 1s to 8760h.
//
// # When clocks change
//
// An expression is an interval if its hours have an element *, */n or a/n; else its times are fixed. They differ as in
// ISC cron:
//
//   - A fixed time that clocks pass over, since they are put forward, fires when the gap ends; all such times of one
//     gap fire once together. A gap can be a whole day.
//   - A fixed time that clocks show twice, since they are put back, fires the first time alone.
//   - An interval fires whenever clocks show a time that matches: twice where they show it twice, not at all in a gap.
//
// # Bounds
//
// A search looks at months, at none of those and at no year that the expression leaves out, and ends after 110
// years: at most 1,332 months. Times of the day are not tried one after the other.
//
// The syntax follows Quartz (CronExpression), the change of clocks ISC cron by Paul Vixie.
package cron

import "time"

// Expression says when something is to happen. Parse makes it; the zero value never fires. It is comparable, and safe
// for concurrent use.
type Expression struct {
	text     string
	schedule schedule
	interval bool          // the hours follow one another at a distance, rather than being named
	every    time.Duration // the period of @every; 0 = the schedule counts
}

// String returns the text that was parsed: words in upper case, those with an @ in lower case, a space between two.
// Parse makes an equal expression of it.
func (e Expression) String() string { return e.text }

// Never reports whether no day of the years 1970 to 2199 matches, as with 30 February.
func (e Expression) Never() bool {
	s := search{of: &e.schedule, direction: 1, first: minYear, last: maxYear}
	_, found := s.date(s.edge(minYear))
	return e.every == 0 && !found
}

// Next returns the first time at which the expression fires, strictly after a time, by the clocks of a zone; nil is
// UTC. It returns false if there is none within 110 years, or none before the year 2200. The clocks of the zone
// must differ from UTC by less than 48 hours.
func (e Expression) Next(after time.Time, zone *time.Location) (time.Time, bool) {
	return e.seek(&search{direction: 1}, after, zone)
}

// Prev returns the last time at which the expression fires, strictly before a time, by the clocks of a zone; nil is
// UTC. It returns false if there is none within 110 years, or none since 1970. The clocks of the zone must differ
// from UTC by less than 48 hours.
func (e Expression) Prev(before time.Time, zone *time.Location) (time.Time, bool) {
	return e.seek(&search{direction: -1}, before, zone)
}

// All times at which an expression fires lie between these, whatever the zone.
var (
	begin = time.Date(minYear, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - reachSeconds
	end   = time.Date(maxYear+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix() + reachSeconds
)

func (e *Expression) seek(s *search, from time.Time, zone *time.Location) (time.Time, bool) {
	if zone == nil {
		zone = time.UTC
	}
	t := min(max(from.Unix(), begin), end)
	if s.direction > 0 || from.Nanosecond() == 0 {
		t += int64(s.direction) // the nearest second that begins after from, or before it
	}
	s.of = &e.schedule
	year := time.Unix(t, 0).UTC().Year()
	s.first, s.last = max(year-reachYears, minYear), min(year+reachYears, maxYear)
	found := false
	switch {
	case e.every > 0 && s.direction > 0:
		t, found = multipleFrom(t, e.every)
	case e.every > 0:
		t, found = multipleUpTo(t, e.every)
	case e.interval && s.direction > 0:
		t, found = s.shownFrom(t, zone)
	case e.interval:
		t, found = s.shownUpTo(t, zone)
	default:
		t, found = s.fixed(t, zone)
	}
	if !found {
		return time.Time{}, false
	}
	return time.Unix(t, 0).In(zone), true
}
