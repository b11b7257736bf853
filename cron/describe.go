package cron

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// mostTimes bounds the times of a day that Describe names one by one.
const mostTimes = 8

// Describe says in English when the expression fires, as in "every 15 minutes, between 08:00 and 17:59, Monday to
// Friday". The text is for people and may change. It is empty for the zero value.
func (e Expression) Describe() string {
	switch {
	case e.every > 0:
		return "every " + spoken(e.every) + ", counted from midnight of 1970-01-01 UTC"
	case e.text == "":
		return ""
	}
	s := &e.schedule
	parts := s.times()
	if day := s.days.describe(); day != "" {
		parts = append(parts, day)
	} else if strings.HasPrefix(parts[0], "at") {
		parts = append(parts, "every day")
	}
	if s.month.size() < 12 {
		parts = append(parts, "in "+s.month.words(1, 12, func(n int) string { return time.Month(n).String() }))
	}
	if years := maxYear - minYear; s.year.size() <= years {
		parts = append(parts, "in "+s.year.words(0, years, func(n int) string { return strconv.Itoa(minYear + n) }))
	}
	return strings.Join(parts, ", ")
}

func spoken(d time.Duration) string {
	seconds := int(d / time.Second)
	switch {
	case seconds%3600 == 0:
		return count(seconds/3600, "hour")
	case seconds%60 == 0:
		return count(seconds/60, "minute")
	}
	return count(seconds, "second")
}

// count names a number of things, and one without its number.
func count(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// times describes the fields second, minute and hour.
func (s *schedule) times() []string {
	hours, minutes, seconds := s.hour.size(), s.minute.size(), s.second.size()
	if seconds == 1 && hours < 24 && hours*minutes <= mostTimes {
		return []string{"at " + s.each()}
	}
	if step := s.hour.paced(24); step > 1 && minutes == 1 && seconds == 1 {
		return []string{fmt.Sprintf("every %d hours from %s", step, s.shown(s.hour.from(0), s.minute.from(0)))}
	}
	parts := s.pace()
	if runs := s.hour.runs(0, 23); len(runs) > 2 {
		parts = append(parts, "in "+s.hour.numbered("hour", 0, 23))
	} else if hours < 24 {
		var spans []string
		for _, r := range runs {
			spans = append(spans, fmt.Sprintf("between %02d:00 and %02d:59", r.lo, r.hi))
		}
		parts = append(parts, and(spans))
	}
	return parts
}

// each names all times of a day.
func (s *schedule) each() string {
	var all []string
	for hour := s.hour.from(0); hour >= 0; hour = s.hour.from(hour + 1) {
		for minute := s.minute.from(0); minute >= 0; minute = s.minute.from(minute + 1) {
			all = append(all, s.shown(hour, minute))
		}
	}
	return and(all)
}

// shown returns a time of the day at the first second of the schedule, which it leaves out where it is 0.
func (s *schedule) shown(hour, minute int) string {
	text := fmt.Sprintf("%02d:%02d", hour, minute)
	if second := s.second.from(0); second > 0 {
		text += fmt.Sprintf(":%02d", second)
	}
	return text
}

// pace describes the fields second and minute.
func (s *schedule) pace() []string {
	if seconds := s.second.often("second"); seconds != "" {
		if s.minute.size() == 60 {
			return []string{seconds}
		}
		return []string{seconds, "in " + s.minute.numbered("minute", 0, 59)}
	}
	minutes := s.minute.often("minute")
	switch {
	case s.minute == among(0, 0):
		minutes = "every hour"
	case minutes == "":
		minutes = "every hour at " + s.minute.numbered("minute", 0, 59)
	}
	if s.second == among(0, 0) {
		return []string{minutes}
	}
	return []string{minutes, "at " + s.second.numbered("second", 0, 59)}
}

// often says how often clocks come to a number of a set of minutes or seconds, "" where the distances differ.
func (s *set) often(noun string) string {
	step, first := s.paced(60), s.from(0)
	switch {
	case step == 0:
		return ""
	case first == 0:
		return "every " + count(step, noun)
	}
	return fmt.Sprintf("every %s from %s %d", count(step, noun), noun, first)
}

// describe says which days match, "" where all do.
func (d *days) describe() string {
	weekday := time.Weekday(d.day)
	text := fmt.Sprintf("day %d of the month", d.day)
	switch d.kind {
	case ofMonth:
		if d.set.size() == 31 {
			return ""
		}
		text = d.set.numbered("day", 1, 31) + " of the month"
	case ofWeek:
		if d.set.size() == 7 {
			return ""
		}
		return d.set.words(0, 6, func(n int) string { return time.Weekday(n).String() })
	case nthOfWeek:
		ordinals := [...]string{1: "first", "second", "third", "fourth", "fifth"}
		text = fmt.Sprintf("the %s %s of the month", ordinals[d.nth], weekday)
	case lastOfWeek:
		text = fmt.Sprintf("the last %s of the month", weekday)
	case lastOfMonth:
		text = "the last day of the month"
		if d.day > 0 {
			text = fmt.Sprintf("day %d before %s", d.day, text)
		}
	}
	if d.kind == nearest || d.workday {
		text = "the day from Monday to Friday nearest to " + text
	}
	return "on " + text
}
