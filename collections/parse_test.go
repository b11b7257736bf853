package collections_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"taskledger/collections"
	"taskledger/cron"
	"taskledger/events"
	"taskledger/schedule"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// parse returns what a file holds that has neither problems nor warnings.
func parse(t *testing.T, text string) *collections.File {
	t.Helper()
	file, warnings, err := collections.Parse("sync.yaml", []byte(text))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%s\n%v\n%v", text, err, warnings)
	}
	return file
}

// problems returns what is wrong with a file, and that nothing was read of it.
func problems(t *testing.T, text string) []collections.Problem {
	t.Helper()
	file, _, err := collections.Parse("sync.yaml", []byte(text))
	invalid, is := errors.AsType[*collections.InvalidFileError](err)
	if !is || file != nil {
		t.Fatalf("%s\nread as %+v, %v", events.Head(text, 500), file, err)
	}
	return invalid.Problems
}

func TestParse_TakesTheDesignsFileWithItsWarnings(t *testing.T) {
	file, warnings, err := collections.Parse("design.yaml", read(t, "testdata/design.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := []collections.Collection{{
		Source: "source_id",
		Name:   "sample_collection",
		Driver: collections.Driver{Driver: collections.Noop},
		Runs: schedule.Definition{
			Cron:     "0/1 * 0 ? * * *",
			Timezone: "UTC",
			Behavior: "collection",
			Overlap:  schedule.Forbid,
			Misfire:  schedule.Once,
			Grace:    time.Hour,
			Priority: 200,
			Attempts: 25,
			Keep:     100,
		},
	}}
	if !reflect.DeepEqual(file.Collections, want) {
		t.Errorf("collections %+v", file.Collections)
	}
	const at = "sources.source_id.collections[0]."
	says := []collections.Warning{
		{
			File:   "design.yaml",
			Line:   4,
			Column: 9,
			Field:  at + "driver",
			Text:   "missing: runs do nothing, as with driver noop",
		},
		{
			File:   "design.yaml",
			Line:   5,
			Column: 19,
			Field:  at + "schedule",
			Text:   `fires each second from 00:00:00 to 00:59:59 and at no other time; every minute is "0 * * ? * * *"`,
		},
	}
	if !reflect.DeepEqual(warnings, says) {
		t.Errorf("warnings %v", warnings)
	}
}

// The first hour of a day has all ticks of the design's schedule.
func TestParse_DesignsScheduleHas3600TicksADay(t *testing.T) {
	file, _, err := collections.Parse("design.yaml", read(t, "testdata/design.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	expression, err := cron.Parse(file.Collections[0].Runs.Cron)
	if err != nil {
		t.Fatal(err)
	}
	clock := time.Date(2026, 3, 9, 22, 30, 0, 0, time.UTC) // the time that it is, as far as the test goes
	first, found := expression.Next(clock, time.UTC)
	if !found || first.Format(time.RFC3339) != "2026-03-10T00:00:00Z" {
		t.Fatalf("first tick %s, %t", first, found)
	}
	count, last := 1, first
	for next := first; ; count, last = count+1, next {
		if next, found = expression.Next(next, time.UTC); !found || next.Sub(first) >= 24*time.Hour {
			if next.Format(time.RFC3339) != "2026-03-11T00:00:00Z" {
				t.Errorf("the next day begins with %s", next)
			}
			break
		}
	}
	if count != 3600 || last.Format(time.RFC3339) != "2026-03-10T00:59:59Z" {
		t.Errorf("%d ticks, the last one at %s", count, last)
	}
}

func TestParse_TakesTheExampleWithoutWarnings(t *testing.T) {
	file := parse(t, string(read(t, "../examples/sync.yaml")))
	var got []string
	for _, c := range file.Collections {
		r := c.Runs
		got = append(got, strings.Join([]string{c.ID(), c.Driver.Driver, r.Cron, r.Timezone, r.Timeout.String()}, " "))
	}
	want := []string{
		"house_meters exec 0 30 3 ? * MON-FRI Europe/Berlin 10m0s",
		"shop_archive fetch  Europe/Berlin 10m0s",
		"shop_orders fetch 0 */15 * ? * * Europe/Berlin 10m0s",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// full gives every key that a collection can have with driver exec.
const full = `
sources:
  s:
    collections:
      - name: c
        driver: exec
        program: sync
        args: [a, "5"]
        env: {B: "1", A: x}
        dir: /srv
        schedule: " 0 0 3 ? *  mon "
        timezone: Europe/Berlin
        priority: 9223371
        timeout: 90s
        attempts: 3
        keep: 0
        overlap: replace
        misfire: all
        grace: 0s
        jitter: 1m
        start: 2027-01-01T01:00:00+01:00
        end: "2028-01-01T00:00:00Z"
        pause_on_failure: true
`

func TestParse_ReadsEveryKey(t *testing.T) {
	want := collections.Collection{
		Source: "s",
		Name:   "c",
		Driver: collections.Driver{
			Driver:  collections.Exec,
			Program: "sync",
			Args:    []string{"a", "5"},
			Env:     map[string]string{"A": "x", "B": "1"},
			Dir:     "/srv",
		},
		Runs: schedule.Definition{
			Cron:           "0 0 3 ? * MON",
			Timezone:       "Europe/Berlin",
			Behavior:       collections.Behavior,
			Overlap:        schedule.Replace,
			Misfire:        schedule.All,
			Grace:          -1,
			Jitter:         time.Minute,
			Start:          time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
			End:            time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC),
			Priority:       9_223_371,
			Timeout:        90 * time.Second,
			Attempts:       3,
			Keep:           -1,
			PauseOnFailure: true,
		},
	}
	if got := parse(t, full).Collections[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v", got)
	}
}

// one returns the settings of the only collection of a file.
func one(t *testing.T, keys string) collections.Driver {
	t.Helper()
	return parse(t, "sources: {s: {collections: [{name: c, "+keys+"}]}}").Collections[0].Driver
}

func TestParse_ReadsTheSettingsOfDrivers(t *testing.T) {
	for keys, want := range map[string]collections.Driver{
		"driver: noop": {Driver: "noop"},
		"driver: fetch, url: 'https://a.example/x?y=1', to: d/x": {
			Driver: "fetch",
			URL:    "https://a.example/x?y=1",
			To:     "d/x",
		},
		"driver: fetch, path: a/b.csv, to: x": {
			Driver: "fetch",
			Path:   "a/b.csv",
			To:     "x",
		},
		"driver: 'go:my-api', params: {b: [1, 2.5, null, true, x, 2027-01-01], a: {}}": {
			Driver: "go:my-api",
			Params: []byte(`{"a":{},"b":[1,2.5,null,true,"x","2027-01-01"]}`),
		},
		"driver: 'go:my-api'": {Driver: "go:my-api"},
	} {
		if got := one(t, keys); !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v", keys, got)
		}
	}
}

func TestParse_TheNearestLevelHolds(t *testing.T) {
	file := parse(t, `
defaults: {driver: fetch, url: "http://d.example/", to: d, env: {A: a}, program: d, schedule: "@daily", keep: 3}
sources:
  s:
    path: s
    schedule: "@hourly"
    collections:
      - {name: a}
      - {name: b, url: "http://b.example/", to: b, schedule: "", keep: 4}
      - {name: c, driver: exec, env: {B: b}}
  t: {collections: [{name: a, to: a}]}
`)
	var got []string
	for _, c := range file.Collections {
		d := c.Driver
		got = append(got, fmt.Sprint(c.ID(), "|", d.Driver, d.URL, d.Path, d.To, d.Program, d.Env, "|", c.Runs.Cron,
			c.Runs.Keep))
	}
	want := []string{
		"s_a|fetchsdmap[]|@hourly3",
		"s_b|fetchhttp://b.example/bmap[]|4",
		"s_c|execdmap[B:b]|@hourly3",
		"t_a|fetchhttp://d.example/amap[]|@daily3",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// What says something of ticks alone is passed over without a schedule, with a warning where it was written for it.
func TestParse_PassesOverWhatIsOfTicksWithoutASchedule(t *testing.T) {
	const text = `
defaults: {driver: noop, misfire: all, jitter: 5s, start: 2027-01-01T00:00:00Z, pause_on_failure: true}
sources: {s: {collections: [{name: a}, {name: b, end: 2030-01-01T00:00:00Z, misfire: skip, keep: 2}, {name: c, schedule: "@daily"}]}}
`
	file, warnings, err := collections.Parse("sync.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for i := range file.Collections[:2] {
		d := &file.Collections[i].Runs
		if d.Cron != "" || d.Misfire != schedule.Once || d.Jitter != 0 || !d.Start.IsZero() || !d.End.IsZero() || d.PauseOnFailure {
			t.Errorf("%+v", d)
		}
		complete(t, &file.Collections[i])
	}
	if d := &file.Collections[2].Runs; d.Misfire != schedule.All || d.Jitter != 5*time.Second || !d.PauseOnFailure {
		t.Errorf("%+v", d)
	}
	const at = "sources.s.collections[1]."
	if len(warnings) != 2 || warnings[0].Field != at+"end" && warnings[1].Field != at+"end" ||
		!strings.Contains(warnings[0].Text, "no ticks") {
		t.Errorf("%+v", warnings)
	}
}

func TestParse_WarnsOfTicksWithinAMinute(t *testing.T) {
	for expression, want := range map[string]string{
		"*/5 30 8 ? * MON": "fires every 5 seconds from 08:30:00 to 08:30:55 and at no other time; every minute is",
		"* * 0,5 ? * *":    "fires every second, between 00:00 and 00:59 and between 05:00 and 05:59; every minute is",
		"* * * ? * *":      "fires every second; every minute is",
		"0,7,8 0 0 1 1 ?":  "; every minute is",
		"0 * * ? * *":      "",
		"30 0 0 ? * *":     "",
		"@every 1s":        "",
	} {
		text := fmt.Sprintf("sources: {s: {collections: [{name: c, driver: noop, schedule: %q}]}}", expression)
		_, warnings, err := collections.Parse("f", []byte(text))
		switch {
		case err != nil:
			t.Errorf("%s: %v", expression, err)
		case want == "" && len(warnings) == 0:
		case len(warnings) != 1 || want == "" || !strings.Contains(warnings[0].Text, want):
			t.Errorf("%s: %v, want %s", expression, warnings, want)
		}
	}
}
