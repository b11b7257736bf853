package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
	"taskledger/integration/simulation/world"
)

// seenAll counts everything once that a large campaign must have seen.
func seenAll() check.Seen {
	s := check.Seen{}
	for _, what := range check.Wanted() {
		s[what] = 1
	}
	return s
}

// A campaign is green only when what it was to show has happened.
func TestCampaign_ProvesSomething(t *testing.T) {
	whole := func() *campaign {
		c := &campaign{options: options{histories: large}, made: large, snapshots: 1, trimmed: 1, faults: map[string]int{},
			seen: seenAll()}
		for _, kind := range world.Kinds() {
			c.faults[kind] = 1
		}
		return c
	}
	if err := whole().proved(); err != nil {
		t.Errorf("a campaign that proves something: %v", err)
	}
	for name, test := range map[string]struct {
		spoil func(*campaign)
		want  string
	}{
		"no history":              {func(c *campaign) { c.made = 0 }, "0 of 500 histories"},
		"one that proves nothing": {func(c *campaign) { c.rejected = 1 }, "499 of 500 histories prove something"},
		"many drawn again":        {func(c *campaign) { c.made, c.rejected = c.made+30, 30 }, "30 of 530 histories prove nothing"},
		"a fault that never bit":  {func(c *campaign) { c.faults["freeze"] = 0 }, `fault "freeze" never bit`},
		"no snapshots":            {func(c *campaign) { c.snapshots = 0 }, "0 snapshots"},
		"no store came again":     {func(c *campaign) { c.seen[check.Reborn] = 0 }, "too little was seen"},
		"no run made room":        {func(c *campaign) { c.seen[check.Replaced] = 0 }, "no run that made room for a tick"},
		"no trims":                {func(c *campaign) { c.trimmed = 0 }, "0 trimmed entries"},
		"late reruns":             {func(c *campaign) { c.reruns.slow = []string{"late"} }, "later than promised"},
		"many late among faults":  {func(c *campaign) { c.reruns.other, c.reruns.among = make([]time.Duration, 99), []string{"late"} }, "1 ran again later than 6s"},
		"a very late one":         {func(c *campaign) { c.reruns.other = []time.Duration{amongEach + 1} }, "none after 10s"},
	} {
		c := whole()
		test.spoil(c)
		if err := c.proved(); !errors.Is(err, errRed) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want one that says %q", name, err, test.want)
		}
	}
}

// What proves nothing counts nowhere.
func TestCampaign_LeavesOutRejectedHistories(t *testing.T) {
	c := &campaign{faults: map[string]int{}, seen: check.Seen{}}
	seen := check.Seen{check.Repeated: 1}
	h := &history.Run{Operations: make([]history.Operation, 7), Members: make([]history.Journals, 1)}
	c.count(h, seen)
	h.Info.Problems = []string{"too little happened"}
	c.count(h, seen)
	if c.made != 2 || c.rejected != 1 || c.operations != 7 || !maps.Equal(c.seen, seen) {
		t.Errorf("%d made, %d rejected, %d operations, seen %+v; want 2, 1, 7, %+v", c.made, c.rejected, c.operations, c.seen, seen)
	}
}

// A seed whose history proves nothing is no failure: another one takes its place, and always the same.
func TestCampaign_DrawsAgainWhatProvesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		empty  []uint64 // seeds whose histories prove nothing
		replay bool
		made   int
		green  bool
	}{
		"one seed":              {[]uint64{7}, false, 21, true},
		"one seed twice":        {[]uint64{7, drawn(7, 1)}, false, 22, false}, // which is more than a few of 22
		"a seed that never can": {[]uint64{7, drawn(7, 1), drawn(7, 2)}, false, 22, false},
		"a seed to be replayed": {[]uint64{1}, true, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			c := &campaign{options: options{histories: 20, seed: 1, parallel: 3}, out: &out, replay: test.replay}
			if test.replay {
				c.histories = 1
			}
			c.history = func(_ context.Context, _ string, seed uint64) (*history.Run, error) {
				h := &history.Run{Members: []history.Journals{{Entries: make([][]history.Record, 1)}}}
				h.Info.Kind, h.Info.Seed, h.Info.Shards, h.Remains.Checked = "simulated", seed, 1, true
				if slices.Contains(test.empty, seed) {
					h.Info.Problems = []string{"too little happened"}
				}
				return h, nil
			}
			err := c.run(t.Context())
			if (err == nil) != test.green || err != nil && !errors.Is(err, errRed) || c.made != test.made || c.rejected != len(test.empty) {
				t.Errorf("%v, %d made, %d rejected; want %d, %d, green: %t\n%s", err, c.made, c.rejected, test.made, len(test.empty), test.green, &out)
			}
			for _, seed := range test.empty {
				if told := fmt.Sprintf("seed %d proves nothing: too little happened\n", seed); !strings.Contains(out.String(), told) {
					t.Errorf("nobody told of seed %d", seed)
				}
			}
		})
	}
}

func TestRun_WithoutHistoriesIsNotGreen(t *testing.T) {
	var out bytes.Buffer
	c := &campaign{options: options{parallel: 1}, out: &out}
	if err := c.run(t.Context()); !errors.Is(err, errRed) {
		t.Errorf("a campaign of no histories: %v, want %v", err, errRed)
	}
}

// Only a kill with no other fault around holds the engine to its promise.
func TestReruns_CountsKillsAlone(t *testing.T) {
	at := func(ms int64) int64 { return ms * int64(time.Millisecond) }
	few := []history.KeyChange{{Node: "node", Slots: 2}}
	kill := history.Fault{Kind: history.KillKind, Target: "node-1 dead", From: at(10_000), Until: at(11_000), Proof: "1 attempt"}
	run := func(next int64, others ...history.Fault) *history.Run {
		return &history.Run{Info: history.Info{TTLMs: 3000}, Faults: append(others, kill), Executions: []history.Execution{
			{Task: "a", Node: "dead", Attempt: 1, Begin: at(9_900)}, {Task: "a", Node: "other", Attempt: 2, Begin: at(next)}}}
	}
	for name, test := range map[string]struct {
		h                        *history.Run
		alone, other, late, slow int
	}{
		"where slots are few": {func() *history.Run { h := run(14_600); h.Keys = few; return h }(), 0, 0, 0, 0},
		"in time":             {run(14_000), 1, 0, 0, 0},
		"a little late":       {run(14_300), 1, 0, 1, 0},
		"late":                {run(14_600), 1, 0, 1, 1},
		"with another fault":  {run(14_600, history.Fault{Kind: "freeze", From: at(12_000), Until: at(13_000)}), 0, 1, 0, 0},
		"after another":       {run(14_600, history.Fault{Kind: "freeze", From: at(5_000), Until: at(6_900)}), 1, 0, 1, 1},
	} {
		var r reruns
		r.add(test.h)
		if len(r.alone) != test.alone || len(r.other) != test.other || r.late != test.late || len(r.slow) != test.slow {
			t.Errorf("%s: %+v, want %d, %d, %d, %d", name, r, test.alone, test.other, test.late, test.slow)
		}
	}
}
