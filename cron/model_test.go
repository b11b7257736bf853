package cron_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// changes are hours in which clocks of a zone change, or nearly so.
var changes = []struct{ zone, at string }{
	{"America/New_York", "2026-03-08T07:00:00Z"},
	{"America/New_York", "2026-11-01T06:00:00Z"},
	{"America/New_York", "2160-03-09T07:00:00Z"},
	{"America/New_York", "2048-12-31T17:00:00Z"},
	{"Europe/Berlin", "2026-03-29T01:00:00Z"},
	{"Europe/Berlin", "2026-10-25T01:00:00Z"},
	{"Europe/London", "1971-10-31T02:00:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
	{"America/Santiago", "2026-09-06T04:00:00Z"},
	{"America/Santiago", "2026-04-05T03:00:00Z"},
	{"Asia/Beirut", "2026-03-28T22:00:00Z"},
	{"Asia/Beirut", "2026-10-24T21:00:00Z"},
	{"Asia/Kathmandu", "1985-12-31T18:30:00Z"},
	{"Asia/Pyongyang", "2015-08-14T15:00:00Z"},
	{"Asia/Pyongyang", "2018-05-04T15:00:00Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},
	{"Pacific/Kwajalein", "1993-08-21T12:00:00Z"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z"},
	{"Antarctica/Troll", "2026-03-29T01:00:00Z"},
	{"Antarctica/Troll", "2026-10-25T01:00:00Z"},
	{"UTC", "2026-12-31T23:00:00Z"},
}

// wallclock watches a clock minute by minute. An interval fires when the clock shows a time that matches; a fixed time
// fires when the clock shows it or a later one for the first time.
type wallclock struct {
	hours, minutes []int
	interval       bool
}

func (w wallclock) String() string {
	list := func(all []int) string { return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ","), "[]") }
	hours := list(w.hours)
	if w.interval {
		hours = fmt.Sprintf("%d/%d", w.hours[0], step(w.hours))
	}
	return fmt.Sprintf("0 %s %s * * ?", list(w.minutes), hours)
}

func step(hours []int) int {
	if len(hours) == 1 {
		return 23
	}
	return hours[1] - hours[0]
}

func (w wallclock) fires(z *time.Location, after, until time.Time) (all []string) {
	matches := func(minute int64) bool {
		return slices.Contains(w.hours, int(minute/60%24)) && slices.Contains(w.minutes, int(minute%60))
	}
	seen := int64(math.MinInt64)
	for when := after.Add(-72 * time.Hour); when.Before(until); when = when.Add(time.Minute) {
		_, offset := when.In(z).Zone()
		shown := (when.Unix() + int64(offset)) / 60
		fired := w.interval && matches(shown)
		if seen == math.MinInt64 {
			seen = shown - 1
		}
		for minute := seen + 1; minute <= shown && !w.interval; minute++ {
			fired = fired || matches(minute)
		}
		seen = max(seen, shown)
		if fired && when.After(after) {
			all = append(all, when.UTC().Format(time.RFC3339))
		}
	}
	return all
}

func drawWallclock(t *rapid.T) wallclock {
	w := wallclock{
		minutes:  rapid.SliceOfNDistinct(rapid.IntRange(0, 59), 1, 4, rapid.ID).Draw(t, "minutes"),
		interval: rapid.Bool().Draw(t, "interval"),
	}
	if !w.interval {
		w.hours = rapid.SliceOfNDistinct(rapid.IntRange(0, 23), 1, 6, rapid.ID).Draw(t, "hours")
		return w
	}
	step := rapid.IntRange(1, 23).Draw(t, "step")
	for hour := rapid.IntRange(0, 23).Draw(t, "first"); hour < 24; hour += step {
		w.hours = append(w.hours, hour)
	}
	return w
}

func TestModel_NextAndPrevFireAsOneWhoWatchesTheClock(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := changes[rapid.IntRange(0, len(changes)-1).Draw(r, "change")]
		z, change := zone(r, c.zone), at(r, c.at)
		after := change.Add(-time.Duration(rapid.IntRange(0, 30*60).Draw(r, "minutes before")) * time.Minute)
		until := change.Add(time.Duration(rapid.IntRange(0, 30*60).Draw(r, "minutes after")) * time.Minute)
		w := drawWallclock(r)
		fires(r, w.String(), z, after, until, w.fires(z, after, until)...)
	})
}

// drawList draws a list of a field.
func drawList(t *rapid.T, name string, lo, hi int) string {
	n := rapid.IntRange(lo, hi)
	switch rapid.IntRange(0, 5).Draw(t, name) {
	case 0:
		return "*"
	case 1:
		return fmt.Sprintf("*/%d", rapid.IntRange(1, hi).Draw(t, name))
	case 2:
		return fmt.Sprintf("%d/%d", n.Draw(t, name), rapid.IntRange(1, hi).Draw(t, name))
	case 3:
		return fmt.Sprintf("%d-%d", n.Draw(t, name), n.Draw(t, name))
	case 4:
		step := rapid.IntRange(1, hi).Draw(t, name)
		return fmt.Sprintf("%d,%d-%d/%d", n.Draw(t, name), n.Draw(t, name), n.Draw(t, name), step)
	}
	return fmt.Sprint(n.Draw(t, name))
}

func drawText(t *rapid.T) string {
	words := []string{
		drawList(t, "second", 0, 59), drawList(t, "minute", 0, 59), drawList(t, "hour", 0, 23),
		"?", drawList(t, "month", 1, 12), "?",
	}
	if rapid.Bool().Draw(t, "of the week") {
		weekday := drawList(t, "weekday", 1, 7)
		words[5] = rapid.SampledFrom([]string{"L", "2L", "FRI#5", "SUN#1", "MON-FRI", weekday}).Draw(t, "weekday")
	} else {
		day := drawList(t, "day", 1, 31)
		words[3] = rapid.SampledFrom([]string{"L", "LW", "L-3", "L-30W", "1W", "31W", "15W", "29", day}).Draw(t, "day")
	}
	return strings.Join(words, " ")
}

func TestNextPrev_AreInverseAndNothingLiesBetween(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := drawText(r)
		e := parse(r, text)
		c := changes[rapid.IntRange(0, len(changes)-1).Draw(r, "change")]
		z := zone(r, c.zone)
		from := at(r, c.at).Add(time.Duration(rapid.Int64Range(-5e5, 5e5).Draw(r, "seconds")) * time.Second)
		inverse(r, text, from, z, e.Next, e.Prev)
	})
}
