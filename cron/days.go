package cron

import "time"

// days says which days of a month match. Its zero value has no kind and matches none.
type days struct {
	kind    kind
	set     set // of ofMonth: days, 1 to 31; of ofWeek: weekdays, 0 = Sunday
	day     int // of lastOfMonth: days before the last one; of nearest: 1 to 31; of nth and lastOfWeek: the weekday
	nth     int // 1 to 5
	workday bool
}

// kind tells the forms of the two fields for days apart.
type kind byte

const (
	ofMonth     kind = iota + 1 // 1,15
	lastOfMonth                 // L, L-3, and with workday LW, L-3W
	nearest                     // 15W
	ofWeek                      // MON-FRI
	nthOfWeek                   // FRI#3
	lastOfWeek                  // FRIL
)

// in returns the days of a month that match.
func (d *days) in(year, month int) (match set) {
	first := time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	length := first.AddDate(0, 1, -1).Day()
	weekday := func(day int) int { return (int(first.Weekday()) + day - 1) % 7 }
	switch d.kind {
	case ofMonth:
		match = among(1, length)
		for i := range match {
			match[i] &= d.set[i]
		}
	case ofWeek:
		for day := 1; day <= length; day++ {
			if d.set.has(weekday(day)) {
				match.add(day)
			}
		}
	default:
		if day := d.single(length, weekday); day >= 1 && day <= length {
			match.add(day)
		}
	}
	return match
}

// single returns the day of a month of the kinds that match one day at most. It is outside of the month where none
// matches.
func (d *days) single(length int, weekday func(day int) int) int {
	switch d.kind {
	case nthOfWeek:
		return 1 + (d.day-weekday(1)+7)%7 + 7*(d.nth-1)
	case lastOfWeek:
		return length - (weekday(length)-d.day+7)%7
	case lastOfMonth:
		if !d.workday {
			return length - d.day
		}
		return workday(length-d.day, length, weekday)
	case nearest:
		return workday(d.day, length, weekday)
	}
	return 0
}

// workday returns the day of Monday to Friday that is nearest to a day and in the same month.
func workday(day, length int, weekday func(day int) int) int {
	switch {
	case day < 1 || day > length:
		return 0
	case weekday(day) == 6 && day == 1:
		return 3
	case weekday(day) == 6:
		return day - 1
	case weekday(day) == 0 && day == length:
		return day - 2
	case weekday(day) == 0:
		return day + 1
	}
	return day
}
