package cron

import "time"

// Limits of a search.
const (
	minYear = 1970
	maxYear = 2199
	// reachYears bounds how many years a search looks ahead or back. The rarest day, a 29 February that is a certain
	// day of the week, comes after 40 years at the latest; only an expression that leaves out years takes longer.
	reachYears = 110
)

// schedule has a set of numbers for each field.
type schedule struct {
	second, minute, hour set
	days                 days
	month                set
	year                 set // counted from minYear
}

// search looks for wall times that match: seconds since 1970, as a clock in UTC would count them.
type search struct {
	of          *schedule
	direction   int // 1 or -1
	first, last int // years
	months      int // those looked at so far
}

// seek returns the matching wall time that is the given one, or the next one in the direction of the search.
func (s *search) seek(wall int64) (int64, bool) {
	at := time.Unix(wall, 0).UTC()
	year, month, day := at.Date()
	begin := date{year, int(month), day}
	clock, today := s.clock(at.Clock())
	if !today {
		begin.day += s.direction
	}
	d, found := s.date(begin)
	if d != begin || !today {
		if s.direction > 0 {
			clock, _ = s.clock(0, 0, 0)
		} else {
			clock, _ = s.clock(23, 59, 59)
		}
	}
	return time.Date(d.year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC).Unix() + clock, found
}

// date is a day of the calendar. Where a search begins, the day may be one before or after those of the month.
type date struct{ year, month, day int }

// edge returns the day of a year that a search comes to first.
func (s *search) edge(year int) date {
	if s.direction > 0 {
		return date{year, 1, 1}
	}
	return date{year, 12, 31}
}

// date returns the matching day that is the given one, or the next one in the direction of the search.
func (s *search) date(d date) (date, bool) {
	for year := s.year(d.year); year >= s.first && year <= s.last; year = s.year(year + s.direction) {
		edge := s.edge(year)
		if year != d.year {
			d = edge
		}
		for month := s.of.month.seek(d.month, s.direction); month >= 0; {
			if month != d.month {
				d.day = edge.day
			}
			s.months++
			match := s.of.days.in(year, month)
			if day := match.seek(d.day, s.direction); day >= 0 {
				return date{year, month, day}, true
			}
			month = s.of.month.seek(month+s.direction, s.direction)
		}
	}
	return date{}, false
}

// year returns the year of the schedule that is the given one, or the next one in the direction, -1 where there is
// none.
func (s *search) year(year int) int {
	if n := s.of.year.seek(year-minYear, s.direction); n >= 0 {
		return minYear + n
	}
	return -1
}

// clock returns the matching time of a day, in seconds, that is the given one, or the next one in the direction.
func (s *search) clock(hour, minute, second int) (int64, bool) {
	sets := [...]*set{&s.of.hour, &s.of.minute, &s.of.second}
	clock := [...]int{hour, minute, second}
	edge := (1 - s.direction) / 2 * 59
	for i := 0; i < len(sets); i++ {
		n := sets[i].seek(clock[i], s.direction)
		if n == clock[i] {
			continue
		}
		for ; n < 0; n = sets[i].seek(clock[i]+s.direction, s.direction) {
			if i--; i < 0 {
				return 0, false
			}
		}
		clock[i] = n
		for i++; i < len(sets); i++ {
			clock[i] = sets[i].seek(edge, s.direction)
		}
	}
	return int64(clock[0]*3600 + clock[1]*60 + clock[2]), true
}
