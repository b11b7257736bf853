package cron_test

import (
	"strings"
	"testing"
)

// In 2026, 1 August is a Saturday, 1 February and 1 March are Sundays, 31 May and 31 January end months on a Sunday and
// a Saturday.
func TestNext_SpecialDaysAreThoseOfTheCalendar(t *testing.T) {
	for _, c := range []struct{ days, after, want string }{
		{"1W 8 ?", "2026-07-01", "2026-08-03 2027-08-02"},
		{"1W 2,3 ?", "2026-01-20", "2026-02-02 2026-03-02"},
		{"31W 1-5 ?", "2026-01-01", "2026-01-30 2026-03-31 2026-05-29"},
		{"30W 5,6 ?", "2026-01-01", "2026-05-29 2026-06-30"},
		{"15W 8,11 ?", "2026-01-01", "2026-08-14 2026-11-16"},
		{"LW 1,5,7 ?", "2026-01-01", "2026-01-30 2026-05-29 2026-07-31"},
		{"L-30W * ?", "2026-07-02", "2026-08-03 2026-10-01"},
		{"L-3W 2 ?", "2026-01-01", "2026-02-25 2027-02-25"},
		{"L-30 * ?", "2026-01-02", "2026-03-01 2026-05-01"},
		{"L 2 ?", "2027-01-01", "2027-02-28 2028-02-29"},
		{"? 2 FRIL", "2026-01-01", "2026-02-27 2027-02-26"},
		{"? * 1#5", "2026-01-01", "2026-03-29 2026-05-31"},
		{"? 8 SAT#1", "2026-01-01", "2026-08-01 2027-08-07"},
		{"29 2 ?", "2096-03-01", "2104-02-29 2108-02-29"},
	} {
		e := parse(t, "0 0 0 "+c.days)
		var got []string
		for when, _ := e.Next(at(t, c.after+"T00:00:00Z").Add(-1), nil); len(got) < len(strings.Fields(c.want)); {
			got = append(got, when.Format("2006-01-02"))
			when, _ = e.Next(when, nil)
		}
		same(t, c.days, got, strings.Fields(c.want))
	}
}
