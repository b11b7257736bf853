package cron_test

import (
	"strings"
	"testing"
	"time"

	"taskledger/cron"
)

type searchFunc func(from time.Time, z *time.Location) (time.Time, bool)

// inverse fails unless next goes ahead, and prev the same way back.
func inverse(t failer, text string, from time.Time, z *time.Location, next, prev searchFunc) {
	t.Helper()
	first, found := next(from, z)
	if !found {
		return
	}
	if !first.After(from) {
		t.Fatalf("%s in %s: next after %s is %s", text, z, from, first)
	}
	if back, _ := prev(first.Add(1), z); !back.Equal(first) {
		t.Fatalf("%s in %s: previous before a moment after %s is %s", text, z, first, back)
	}
	if back, found := prev(first, z); found && back.After(from) {
		t.Fatalf("%s in %s: %s lies between %s and the next time after it, %s", text, z, back, from, first)
	}
	if again, _ := next(first.Add(-1), z); !again.Equal(first) {
		t.Fatalf("%s in %s: next a moment before %s is %s", text, z, first, again)
	}
	if second, found := next(first, z); found {
		if back, _ := prev(second, z); !back.Equal(first) {
			t.Fatalf("%s in %s: previous before %s is %s, came from %s", text, z, second, back, first)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"quartz_golden.tsv", "quartz_policy.tsv"} {
		for i, v := range vectors(f, file) {
			if i%7 == 0 || file == "quartz_policy.tsv" {
				f.Add(v.text, v.from.Unix(), uint8(i))
			}
		}
	}
	more := []string{"@every 90s", "@daily", "*/5 9 * * 1-5", "0 0 9 * * MON", "0 0 0 L-3W * ?", "0 0 * 30 2 ?"}
	for _, text := range more {
		f.Add(text, int64(1<<31), uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, from int64, zoned uint8) {
		e, err := cron.Parse(text)
		if err != nil {
			if e != (cron.Expression{}) || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("%q: %v, %q", text, e, err)
			}
			return
		}
		if again, err := cron.Parse(e.String()); err != nil || again != e {
			t.Fatalf("%q: read again as %q: %v, %v", text, e, again, err)
		}
		if e.Describe() == "" {
			t.Fatalf("%q: no description", text)
		}
		z, when := zone(t, changes[int(zoned)%len(changes)].zone), time.Unix(from%(1<<40), 0)
		inverse(t, text, when, z, e.Next, e.Prev)
		if next, prev := e.MonthsOfNext(when, z), e.MonthsOfPrev(when, z); next > 1400 || prev > 1400 {
			t.Fatalf("%q: looks at %d months ahead, %d back", text, next, prev)
		}
		if _, found := e.Next(time.Unix(0, 0), z); found && e.Never() {
			t.Fatalf("%q: fires, and never fires", text)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	now := at(b, "2026-11-20T22:30:00Z")
	for name, text := range map[string]string{
		"a second of one hour":  "0/1 * 0 ? * * *",
		"never":                 "0 0 0 30 2 ?",
		"an interval, never":    "0 0 * 30 2 ?",
		"most months in vain":   "0 0 0 L-30 2,4,6,9,11 ?",
		"rare":                  "0 0 0 ? 2 MON#5",
		"an interval":           "0 0/15 * * * ?",
		"workdays at some hour": "0 0 9 ? * MON-FRI",
	} {
		e := parse(b, text)
		for _, place := range []string{"UTC", "America/New_York"} {
			z := zone(b, place)
			b.Run(name+"/"+place, func(b *testing.B) {
				for b.Loop() {
					e.Next(now, z)
				}
			})
		}
	}
}
