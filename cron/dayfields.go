package cron

import (
	"fmt"
	"strconv"
	"strings"
)

// maxBack bounds n of L-n: the first of 31 days comes 30 days before the last one.
const maxBack = 30

// parseMonthDays reads the field day-of-month.
func parseMonthDays(text string) (days, error) {
	f := &fields[monthDayField]
	if !strings.ContainsAny(text, "LW") {
		all, err := f.list(text, 0)
		return days{kind: ofMonth, set: all}, err
	}
	if strings.Contains(text, ",") {
		return days{}, fmt.Errorf("%s: L and W stand alone, not in a list", text)
	}
	number, workday := strings.CutSuffix(text, "W")
	back, last := strings.CutPrefix(number, "L")
	if !last && workday {
		day, err := f.value(number)
		return days{kind: nearest, day: day}, err
	}
	back, some := strings.CutPrefix(back, "-")
	n, err := strconv.ParseUint(back, 10, 8)
	if plain := !some && back == ""; !last || !plain && (!some || err != nil || n > maxBack) {
		return days{}, fmt.Errorf("%q: want L, LW, 15W, or L-1 and L-1W with up to %d", text, maxBack)
	}
	return days{kind: lastOfMonth, day: int(n), workday: workday}, nil
}

// parseWeekdays reads the field day-of-week.
func parseWeekdays(text string) (days, error) {
	f := &fields[weekdayField]
	name, last := strings.CutSuffix(text, "L")
	name, nth, numbered := strings.Cut(name, "#")
	switch {
	case (last || numbered || strings.Contains(text, "L,")) && strings.Contains(text, ","):
		return days{}, fmt.Errorf("%s: L and # stand alone, not in a list", text)
	case text == "L":
		name, last = "SAT", false
	case last && numbered:
		return days{}, fmt.Errorf("%q: L and # exclude each other", text)
	case last || numbered:
		return oneWeekday(f, name, nth, numbered)
	}
	all, err := f.list(name, 1)
	return days{kind: ofWeek, set: all}, err
}

// oneWeekday reads a weekday with its number in the month, or the last one.
func oneWeekday(f *field, name, nth string, numbered bool) (days, error) {
	day, err := f.value(name)
	if err != nil {
		return days{}, err
	}
	if !numbered {
		return days{kind: lastOfWeek, day: day - 1}, nil
	}
	n, err := strconv.ParseUint(nth, 10, 8)
	if err != nil || n < 1 || n > 5 {
		return days{}, fmt.Errorf("%s#%s: want # and 1 to 5", name, nth)
	}
	return days{kind: nthOfWeek, day: day - 1, nth: int(n)}, nil
}
