package work_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/task"
	"taskledger/work"
	"taskledger/work/workledger"
)

func TestRun_OfAPartitionThatThisNodeLacksIsGivenBackMoreAndMoreSlowlyAndToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := func(context.Context, int) error { return nil }
		there := work.Define("numbers", nil,
			partition{ID: "old", Items: numbers, Process: ended}, partition{ID: "new", Items: numbers, Process: ended})
		here := work.Define("numbers", nil, partition{ID: "old", Items: numbers, Process: ended})
		r := newRecord()
		plan := there.Planned()
		r.plan, r.partition, r.begun = &plan, 1, true
		var log bytes.Buffer
		attempt := func() string {
			out := here.Run(opening(t.Context(), totals{r.attempt()}, false, nil), task.Attempt{
				Task:   "a/p",
				Number: 1,
				Params: []byte("0"),
				Log:    slog.New(slog.NewTextHandler(&log, nil)),
			})
			return said(&out)
		}
		for _, want := range []string{"1s", "2s", "4s", "8s", "16s", "32s", "1m0s", "1m0s"} {
			for range 3 { // of workers that are given back together
				if got := attempt(); got != "release "+want {
					t.Fatalf("%s, want release %s", got, want)
				}
			}
			time.Sleep(time.Minute)
		}
		for _, say := range []string{"cannot go on with the run", "goes on by the definition it was begun with"} {
			if n := strings.Count(log.String(), say); n != 1 {
				t.Errorf("%q is told %d times, want once:\n%s", say, n, &log)
			}
		}
		if len(r.open) != 0 || len(r.done) != 0 {
			t.Errorf("buckets %v are open, %v done", r.open, r.done)
		}
	})
}

func TestRun_OnANodeWithOtherRulesGoesByThoseThatAreRecorded(t *testing.T) {
	type rules = []work.Rule
	ignores, retries := work.Rule{Code: "busy", React: work.Ignore}, work.Rule{Code: "busy", React: work.Retry, Backoff: 1}
	for name, c := range map[string]struct {
		there, here rules
		times       int64 // that the item is processed
		want        work.Counts
	}{
		"ignored there, failed here":  {there: rules{ignores}, times: 1, want: work.Counts{Skipped: 1}},
		"failed there, ignored here":  {here: rules{ignores}, times: 1, want: work.Counts{Failed: 1}},
		"repeated there, failed here": {there: rules{retries}, times: 2, want: work.Counts{Failed: 1}},
		"failed there, repeated here": {here: rules{retries}, times: 1, want: work.Counts{Failed: 1}},
	} {
		times := int64(0)
		define := func(r rules) *work.Work[int, int] {
			return work.Define("numbers", nil, partition{
				Items:        numbers,
				Segmentation: cut(1, 1),
				Rules:        r,
				Process: func(context.Context, int) error {
					times++
					return busy
				},
			})
		}
		r, plan := newRecord(), define(c.there).Planned()
		r.plan = &plan
		if _, err := define(c.here).Attempt(t.Context(), r.attempt(), 0, work.Attempt{Number: 1}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := r.total(); got != c.want || times != c.times {
			t.Errorf("%s: %+v, processed %d times, want %+v and %d", name, got, times, c.want, c.times)
		}
	}
}

func TestPlanned_HasTheRulesOfAllPartitionsUnlessTheyAreLarge(t *testing.T) {
	for codes, recorded := range map[int]bool{10: true, 60: false} {
		var all []partition
		for range 64 {
			p := partition{Items: numbers, Process: nothing, Rules: []work.Rule{{React: work.Ignore}}}
			for n := range 5 {
				p.Rules = append(p.Rules, work.Rule{Code: strings.Repeat("x", codes) + string(rune('0'+n))})
			}
			all = append(all, p)
		}
		for _, p := range work.Define("numbers", nil, all...).Planned().Partitions {
			if is := p.Rules != nil; is != recorded {
				t.Fatalf("with codes of %d bytes partition %s has rules %t, want %t", codes, p.ID, is, recorded)
			}
		}
	}
}

func TestRun_OfRulesThatThisNodeDoesNotKnowIsGivenBack(t *testing.T) {
	here := work.Define("numbers", nil, partition{Items: numbers, Process: nothing, Segmentation: cut(1, 1)})
	r, plan := newRecord(), here.Planned()
	plan.Partitions[0].Rules = []workledger.Rule{{React: 99}}
	r.plan = &plan
	out := here.Run(opening(t.Context(), totals{r.attempt()}, false, nil), task.Attempt{
		Task:   "a/p",
		Number: 1,
		Params: []byte("0"),
	})
	if got := said(&out); got != "release 1s" {
		t.Errorf("%s, want release 1s", got)
	}
}

func TestRun_OfAPartitionThatCountsOtherwiseOnThisNodeIsGivenBackAndToldOnce(t *testing.T) {
	type (
		rules  = []work.Rule
		limits = []work.Threshold
	)
	const releases, ends = "release", "result"
	once := work.Rule{Code: "busy", React: work.Stop}
	other, many := work.Rule{Code: "other", React: work.Stop}, work.Rule{Code: "busy", React: work.Stop, Times: 100}
	deletes, none := work.Threshold{Counter: "deletes", Limit: 100}, work.Threshold{Counter: "deletes"}
	for name, c := range map[string]struct {
		there, here             rules
		thereLimits, hereLimits limits
		mode                    work.Mode
		want                    string
	}{
		"a rule that stops here alone":          {here: rules{many}, want: releases},
		"a rule that stops there alone":         {there: rules{many}, want: releases},
		"rules in another order":                {there: rules{many, other}, here: rules{other, many}, want: releases},
		"a rule that stops earlier here":        {there: rules{many}, here: rules{once}, want: releases},
		"a rule that does not stop":             {there: rules{many}, here: rules{many, {Code: "other"}}, want: ends},
		"a threshold here alone":                {hereLimits: limits{deletes}, want: releases},
		"a threshold there alone":               {thereLimits: limits{deletes}, want: releases},
		"a threshold with another limit":        {thereLimits: limits{deletes}, hereLimits: limits{none}, want: ends},
		"a threshold that a dry run never asks": {hereLimits: limits{deletes}, mode: work.DryRun, want: ends},
	} {
		t.Run(name, func(t *testing.T) {
			define := func(r rules, l limits) *work.Work[int, int] {
				return work.Define("numbers", nil, partition{
					Mode:         c.mode,
					Items:        numbers,
					Segmentation: cut(10, 1),
					Rules:        r,
					Thresholds:   l,
					Process: func(ctx context.Context, _ int) error {
						if len(l) == 0 {
							return busy
						}
						return work.Permit(ctx, l[0].Counter)
					},
				})
			}
			r, here := newRecord(), define(c.here, c.hereLimits)
			plan := define(c.there, c.thereLimits).Planned()
			r.plan, r.begun = &plan, true
			var log bytes.Buffer
			for range 2 {
				out := here.Run(opening(t.Context(), totals{r.attempt()}, false, nil), task.Attempt{
					Task:   "a/p",
					Number: 1,
					Params: []byte("0"),
					Log:    slog.New(slog.NewTextHandler(&log, nil)),
				})
				if got := said(&out); !strings.HasPrefix(got, c.want) {
					t.Errorf("%s, want %s", got, c.want)
				}
			}
			told := 0
			if c.want == releases {
				told = 1
			}
			if n := strings.Count(log.String(), "level=WARN msg=\"attempts are given back"); n != told || len(r.asks) > 10 {
				t.Errorf("it is told %d times, want %d; %d permits were asked for:\n%s", n, told, len(r.asks), &log)
			}
		})
	}
}
