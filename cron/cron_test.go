package cron_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"go.uber.org/goleak"

	"taskledger/cron"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failer is a test, of rapid or not.
type failer interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func parse(t failer, text string) cron.Expression {
	t.Helper()
	e, err := cron.Parse(text)
	if err != nil {
		t.Fatalf("parse %q: %v", text, err)
	}
	return e
}

func zone(t failer, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return z
}

func at(t failer, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return when
}

// fires holds an expression to all times at which it is to fire between two: forwards and backwards.
func fires(t failer, text string, z *time.Location, after, until time.Time, want ...string) {
	t.Helper()
	e := parse(t, text)
	var got []string
	for when, found := e.Next(after, z); found && when.Before(until); when, found = e.Next(when, z) {
		got = append(got, when.UTC().Format(time.RFC3339))
		if len(got) > len(want) {
			break
		}
	}
	same(t, text+" in "+z.String()+", next", got, want)
	got = nil
	for when, found := e.Prev(until, z); found && when.After(after); when, found = e.Prev(when, z) {
		got = append([]string{when.UTC().Format(time.RFC3339)}, got...)
		if len(got) > len(want) {
			break
		}
	}
	same(t, text+" in "+z.String()+", previous", got, want)
}

func same(t failer, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
			return
		}
	}
}

func TestNextPrev_TimesAreInTheZone(t *testing.T) {
	e, tokyo := parse(t, "0 0 9 * * ?"), zone(t, "Asia/Tokyo")
	now := at(t, "2026-11-20T22:30:00Z")
	next, _ := e.Next(now, tokyo)
	prev, _ := e.Prev(now, tokyo)
	if next.Location() != tokyo || next.Hour() != 9 || prev.Location() != tokyo || prev.Hour() != 9 {
		t.Errorf("next %s, previous %s; want 9 o'clock in Tokyo", next, prev)
	}
	if next, _ = e.Next(now, nil); next.Location() != time.UTC || next.Hour() != 9 {
		t.Errorf("next without a zone %s, want 9 o'clock UTC", next)
	}
	if prev, _ = e.Prev(now, nil); prev.Location() != time.UTC || prev.Hour() != 9 {
		t.Errorf("previous without a zone %s, want 9 o'clock UTC", prev)
	}
}

func TestNextPrev_AreStrictAlsoWithinASecond(t *testing.T) {
	e, noon := parse(t, "0 0 12 * * ?"), at(t, "2026-11-20T12:00:00Z")
	day := 24 * time.Hour
	for _, c := range []struct {
		from       time.Time
		next, prev time.Time
	}{
		{noon.Add(-1), noon, noon.Add(-day)},
		{noon, noon.Add(day), noon.Add(-day)},
		{noon.Add(1), noon.Add(day), noon},
	} {
		if next, _ := e.Next(c.from, nil); !next.Equal(c.next) {
			t.Errorf("next after %s: %s, want %s", c.from, next, c.next)
		}
		if prev, _ := e.Prev(c.from, nil); !prev.Equal(c.prev) {
			t.Errorf("previous before %s: %s, want %s", c.from, prev, c.prev)
		}
	}
}

func TestNextPrev_EndAtTheYears1970And2199(t *testing.T) {
	first, last := at(t, "1970-01-01T00:00:00Z"), at(t, "2199-12-31T23:59:59Z")
	far := time.Unix(1<<40, 0)
	const step = time.Second
	for _, text := range []string{"* * * * * ?", "@every 1s", "* * 0,23 * * ?"} {
		e := parse(t, text)
		for _, c := range []struct {
			what string
			from time.Time
			want time.Time // of Next, or of Prev below
			back bool
		}{
			{"the zero time", time.Time{}, first, false},
			{"before 1970", first.Add(-step), first, false},
			{"before the last second", last.Add(-step), last, false},
			{"the last second", last, time.Time{}, false},
			{"the year 9999", at(t, "9999-12-31T23:59:59Z"), time.Time{}, false},
			{"the far future", far, time.Time{}, false},
			{"the far future, back", far, last, true},
			{"the year 9999, back", at(t, "9999-12-31T23:59:59Z"), last, true},
			{"the second second, back", first.Add(step), first, true},
			{"the first second, back", first, time.Time{}, true},
			{"the zero time, back", time.Time{}, time.Time{}, true},
		} {
			search := e.Next
			if c.back {
				search = e.Prev
			}
			got, found := search(c.from, nil)
			if !got.Equal(c.want) || found == c.want.IsZero() {
				t.Errorf("%s from %s: %s, %t; want %s", text, c.what, got, found, c.want)
			}
		}
	}
}

func TestNextPrev_LookNoFurtherThan110Years(t *testing.T) {
	e := parse(t, "0 0 0 1 1 ? 1980,2190")
	for from, want := range map[string]bool{"2079-06-01T00:00:00Z": false, "2080-01-01T00:00:00Z": true} {
		if next, found := e.Next(at(t, from), nil); found != want {
			t.Errorf("next after %s: %s, %t, want %t", from, next, found, want)
		}
	}
	for from, want := range map[string]bool{"2091-01-01T00:00:01Z": false, "2091-01-01T00:00:00Z": true} {
		if prev, found := e.Prev(at(t, from), nil); found != want {
			t.Errorf("previous before %s: %s, %t, want %t", from, prev, found, want)
		}
	}
}

func TestExpression_TheZeroValueNeverFires(t *testing.T) {
	var e cron.Expression
	_, next := e.Next(time.Unix(0, 0), nil)
	_, prev := e.Prev(time.Unix(1<<31, 0), nil)
	if next || prev || !e.Never() || e.String() != "" || e.Describe() != "" {
		t.Errorf("next %t, previous %t, never %t, %q, %q", next, prev, e.Never(), e, e.Describe())
	}
}

func TestNever_TellsWhatNoCalendarHas(t *testing.T) {
	for text, want := range map[string]bool{
		"0 0 0 30 2 ?":           true,
		"0 0 * 30 2 ?":           true,
		"0 0 0 31 4,6,9,11 ?":    true,
		"0 0 0 29 2 ? 2100":      true,
		"0 0 0 29 2 ? 2196":      false,
		"0 0 0 31W 2 ?":          true,
		"0 0 0 L-30 2 ?":         true,
		"0 0 0 ? 2 MON#5 2027":   true,
		"0 0 0 ? 2 MON#5 2044":   false,
		"0 0 0 1 1 ? 1970":       false,
		"0 0 0 29 2 ?":           false,
		"@every 1h":              false,
		"0 0 0 ? 2 SUN#5 2032":   false,
		"0 0 0 L-28W 2 ? 2027/2": true,
	} {
		if got := parse(t, text).Never(); got != want {
			t.Errorf("%s: never %t, want %t", text, got, want)
		}
	}
}

func TestEvery_CountsFrom1970WhateverTheZone(t *testing.T) {
	for _, name := range []string{"UTC", "Asia/Kathmandu", "America/New_York"} {
		fires(t, "@every 7h", zone(t, name), at(t, "1969-12-31T00:00:00Z"), at(t, "1970-01-01T15:00:00Z"),
			"1970-01-01T00:00:00Z", "1970-01-01T07:00:00Z", "1970-01-01T14:00:00Z")
		fires(t, "@every 90s", zone(t, name), at(t, "2026-11-01T05:58:30Z"), at(t, "2026-11-01T06:03:00Z"),
			"2026-11-01T06:00:00Z", "2026-11-01T06:01:30Z")
	}
}
