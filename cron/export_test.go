package cron

import "time"

// MonthsOfNext returns how many months Next looks at.
func (e Expression) MonthsOfNext(after time.Time, zone *time.Location) int {
	s := search{direction: 1}
	e.seek(&s, after, zone)
	return s.months
}

// MonthsOfPrev returns how many months Prev looks at.
func (e Expression) MonthsOfPrev(before time.Time, zone *time.Location) int {
	s := search{direction: -1}
	e.seek(&s, before, zone)
	return s.months
}
