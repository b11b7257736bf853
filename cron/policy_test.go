package cron_test

import (
	"strings"
	"testing"

	"taskledger/cron"
)

// decided says of each vector of quartz_policy.tsv what this package does, and why where that is not what Quartz does.
var decided = map[string]struct {
	why  string // "" = it agrees with Quartz
	want string // times, or part of the error after ERR
}{
	"dst-gap-daily": {
		"a fixed time in the gap fires at its end",
		"2026-03-08T07:00:00Z 2026-03-09T06:30:00Z 2026-03-10T06:30:00Z",
	},
	"dst-gap-0200": {
		"a fixed time in the gap fires at its end",
		"2026-03-08T07:00:00Z 2026-03-09T06:00:00Z 2026-03-10T06:00:00Z",
	},
	"dst-gap-0300":   {},
	"dst-gap-15m":    {},
	"dst-gap-hourly": {},
	"dst-fall-daily": {
		"a fixed time fires when clocks show it first",
		"2026-11-01T05:30:00Z 2026-11-02T06:30:00Z 2026-11-03T06:30:00Z",
	},
	"dst-fall-15m": {
		"an interval goes on through the overlap",
		"2026-11-01T05:30:00Z 2026-11-01T05:45:00Z 2026-11-01T06:00:00Z 2026-11-01T06:15:00Z 2026-11-01T06:30:00Z " +
			"2026-11-01T06:45:00Z",
	},
	"dst-fall-hourly": {
		"an interval goes on through the overlap",
		"2026-11-01T05:00:00Z 2026-11-01T06:00:00Z 2026-11-01T07:00:00Z 2026-11-01T08:00:00Z",
	},
	"dst-fall-0200": {},
	"dst-gap-ldn": {
		"a fixed time in the gap fires at its end",
		"2026-03-29T01:00:00Z 2026-03-30T00:30:00Z 2026-03-31T00:30:00Z",
	},
	"dst-fall-ldn-10m": {
		"the hour is fixed, so its minutes fire when clocks show them first",
		"2026-10-25T00:20:00Z 2026-10-25T00:30:00Z 2026-10-25T00:40:00Z 2026-10-25T00:50:00Z 2026-10-26T01:00:00Z " +
			"2026-10-26T01:10:00Z 2026-10-26T01:20:00Z 2026-10-26T01:30:00Z",
	},
	"dst-lordhowe-gap": {
		"a fixed time in the gap fires at its end",
		"2026-10-02T15:45:00Z 2026-10-03T15:30:00Z 2026-10-04T15:15:00Z",
	},
	"dst-santiago-midnight": {
		"a fixed time in the gap fires at its end",
		"2026-09-05T04:00:00Z 2026-09-06T04:00:00Z 2026-09-07T03:00:00Z 2026-09-08T03:00:00Z",
	},
	"dst-beirut-midnight": {
		"a fixed time in the gap fires at its end",
		"2026-03-27T22:00:00Z 2026-03-28T22:00:00Z 2026-03-29T21:00:00Z 2026-03-30T21:00:00Z",
	},
	"dst-midgap-dow": {
		"a fixed time in the gap fires at its end",
		"2026-03-08T07:00:00Z 2026-03-15T06:30:00Z",
	},
	"dst-yearly-L": {
		"a fixed time in the gap fires at its end",
		"2024-03-31T01:00:00Z 2025-03-31T00:30:00Z",
	},
	"bad-8":        {"text after the year is taken for a mistake", `ERR "1" follows the year`},
	"bad-year1969": {"a year that never comes is taken for a mistake", "ERR year (field 7): 1969 is below 1970"},
	"bad-year2300": {"a year that is never reached is taken for a mistake", "ERR year (field 7): 2300 is above 2199"},
	"bad-step0":    {"a step of nothing is taken for a mistake", `ERR minute (field 2): step "0", want 1 to 59`},
	"bad-Wlist":    {"Quartz passes over the 15", "ERR day-of-month (field 4): 1W,15: L and W stand alone"},
	"bad-trail":    {"Quartz passes over the X", `ERR day-of-week (field 6): "MONX" is neither a number nor a name`},
	"bad-dupcomma": {"an empty element is taken for a mistake", "ERR minute (field 2): an element of the list is empty"},
}

func TestPolicy_EveryVectorIsDecided(t *testing.T) {
	all := vectors(t, "quartz_policy.tsv")
	if len(all) != len(decided) {
		t.Errorf("%d vectors, %d decisions", len(all), len(decided))
	}
	for _, v := range all {
		d, known := decided[v.id]
		e, err := cron.Parse(v.text)
		part, refused := strings.CutPrefix(d.want, "ERR ")
		switch {
		case !known:
			t.Errorf("%s: %s: not decided", v.id, v.text)
		case d.want == strings.Join(v.want, " "):
			t.Errorf("%s: %s: agrees with Quartz, which needs no decision", v.id, v.text)
		case refused && (err == nil || !strings.Contains(err.Error(), part)):
			t.Errorf("%s: %s: %v, want an error with %q", v.id, v.text, err, part)
		case refused:
		case err != nil:
			t.Errorf("%s: %s: %v", v.id, v.text, err)
		default:
			want := v.want
			if d.want != "" {
				want = strings.Fields(d.want)
			}
			same(t, v.id+": "+v.text, following(e, v, len(want)), want)
		}
	}
}
