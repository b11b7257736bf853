package cron

import (
	"math"
	"time"
)

// reachSeconds is more than clocks of a zone ever differ from UTC, and than they are put back.
const reachSeconds = 48 * 3600

// period is a stretch of time in which clocks have one offset from UTC. It is known by an instant in it.
type period struct{ end, offset int64 } // the end is the first instant after it

// periodAt returns the period of an instant, which may be the first part of a longer one.
func periodAt(t int64, zone *time.Location) period {
	at := time.Unix(t, 0).In(zone)
	_, offset := at.Zone()
	p := period{end: math.MaxInt64, offset: int64(offset)}
	if _, end := at.ZoneBounds(); !end.IsZero() {
		p.end = end.Unix()
	}
	// ZoneBounds ends a year after 365 days, so on 31 December of a leap year it names a time that is over.
	if p.end <= t {
		p.end = at.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Unix()
	}
	return p
}

// highest returns the latest wall time that clocks show up to an instant.
func highest(t int64, zone *time.Location) int64 {
	wall := int64(math.MinInt64)
	for at := t - reachSeconds; at <= t; {
		p := periodAt(at, zone)
		wall = max(wall, min(t, p.end-1)+p.offset)
		at = p.end
	}
	return wall
}

// lowest returns the earliest wall time that clocks show from an instant on.
func lowest(t int64, zone *time.Location) int64 {
	wall := int64(math.MaxInt64)
	for at := t; at < t+reachSeconds; {
		p := periodAt(at, zone)
		wall = min(wall, at+p.offset)
		at = p.end
	}
	return wall
}

// reached returns the first instant at which clocks show a wall time or a later one: where it falls into a gap, the end
// of the gap.
func reached(wall int64, zone *time.Location) int64 {
	for at := wall - reachSeconds; ; {
		p := periodAt(at, zone)
		if wall-p.offset < p.end {
			return max(at, wall-p.offset)
		}
		at = p.end
	}
}
