package cron_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"taskledger/cron"
)

// vector holds the times that Quartz finds for one expression.
type vector struct {
	id, text string
	location *time.Location
	from     time.Time
	want     []string // times, "none" after them where there are no more, or ERR alone
}

func vectors(t failer, file string) (all []vector) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, vector{columns[0], columns[1], zone(t, columns[2]), at(t, columns[3]), columns[4:]})
	}
	return all
}

func TestGolden_AllVectorsOfQuartzAgree(t *testing.T) {
	seen := 0
	for _, v := range vectors(t, "quartz_golden.tsv") {
		seen++
		e, err := cron.Parse(v.text)
		if strings.HasPrefix(v.want[0], "ERR") {
			if err == nil {
				t.Errorf("%s: %q is accepted, Quartz says %s", v.id, v.text, v.want[0])
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %q: %v", v.id, v.text, err)
			continue
		}
		same(t, v.id+": "+v.text, following(e, v, len(v.want)), v.want)
	}
	if seen != 789 {
		t.Errorf("%d vectors, want 789", seen)
	}
}

// following returns the next n times after that of a vector, with "none" where there are no more.
func following(e cron.Expression, v vector, n int) (got []string) {
	when, found := v.from, true
	for range n {
		if when, found = e.Next(when, v.location); !found {
			return append(got, "none")
		}
		got = append(got, when.UTC().Format(time.RFC3339))
	}
	return got
}

func TestGolden_PrevGoesBackTheWayOfNext(t *testing.T) {
	for _, v := range vectors(t, "quartz_golden.tsv") {
		e, err := cron.Parse(v.text)
		if err != nil {
			continue
		}
		last, found := e.Next(v.from, v.location)
		for range 40 {
			if !found {
				break
			}
			if prev, _ := e.Prev(last.Add(1), v.location); !prev.Equal(last) {
				t.Errorf("%s: %s: previous before a moment after %s: %s", v.id, v.text, last, prev)
			}
			var next time.Time
			if next, found = e.Next(last, v.location); found {
				if prev, _ := e.Prev(next, v.location); !prev.Equal(last) {
					t.Errorf("%s: %s: previous before %s: %s, want %s", v.id, v.text, next, prev, last)
				}
			}
			last = next
		}
	}
}

// A search that looked at days one by one, or at years that cannot match, would look at more.
func TestSearch_LooksAtFewMonths(t *testing.T) {
	for _, v := range vectors(t, "quartz_golden.tsv") {
		if e, err := cron.Parse(v.text); err == nil {
			next, prev := e.MonthsOfNext(v.from, v.location), e.MonthsOfPrev(v.from, v.location)
			if next > 30 || prev > 600 {
				t.Errorf("%s: %s: looks at %d months ahead, %d back", v.id, v.text, next, prev)
			}
		}
	}
	from := at(t, "2026-11-20T22:30:00Z")
	for text, most := range map[string]int{
		"0/1 * 0 ? * * *":     4,
		"0 0 0 30 2 ?":        111,     // one a year
		"0 0 * 30 2 ?":        111,     // the same for an interval
		"0 0 0 31 2,4,6,9 ?":  4 * 111, // four a year
		"0 0 0 ? * MON#5":     4,
		"0 0 0 29 2 ?":        4,
		"0 0 0 ? 2 MON#5":     20,
		"0 0 0 1 1 ? 2199":    0, // beyond the years that are looked at
		"0 0 0/2 1 1 ? 2136":  3,
		"0 0 0 29 2 ? 2027/4": 28, // every fourth year, the wrong ones
	} {
		if n := parse(t, text).MonthsOfNext(from, zone(t, "America/New_York")); n > most {
			t.Errorf("%s: looks at %d months, at most %d", text, n, most)
		}
		if n := parse(t, text).MonthsOfPrev(from, zone(t, "America/New_York")); n > most {
			t.Errorf("%s: looks at %d months back, at most %d", text, n, most)
		}
	}
	// All matching times lie in a day that clocks of the zone passed over.
	gone, apia := parse(t, "0 0 0/12 30 12 ? 2011"), zone(t, "Pacific/Apia")
	next := gone.MonthsOfNext(at(t, "2011-06-01T00:00:00Z"), apia)
	prev := gone.MonthsOfPrev(at(t, "2012-06-01T00:00:00Z"), apia)
	if next > 12 || prev > 12 {
		t.Errorf("%s: looks at %d months ahead, %d back, at most 12", gone, next, prev)
	}
}
