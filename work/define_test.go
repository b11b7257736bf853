package work_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/store"
	"taskledger/task"
	"taskledger/work"
	"taskledger/work/segmentation"
)

// whole returns a partition that says something of everything.
func whole() partition {
	return partition{
		ID:           "rows",
		Mode:         work.Simulate,
		Items:        numbers,
		Count:        func(context.Context, int) (int64, error) { return 1, nil },
		Key:          func(n int) string { return fmt.Sprint(n) },
		Process:      nothing,
		Segmentation: segmentation.Plan{Kind: segmentation.Interval, Alphabets: []string{"a-z"}, Depth: 2},
		Workers:      2,
		Threads:      3,
		Rules: []work.Rule{
			{Code: "busy", React: work.Retry, Times: 2, Backoff: time.Minute},
			{React: work.Stop, Times: 5},
		},
		Thresholds: []work.Threshold{{Counter: "deletes", Limit: 9}},
	}
}

func TestValidate_NamesFieldAndLimit(t *testing.T) {
	large := segmentation.Plan{Kind: segmentation.Explicit, Explicit: []segmentation.Content{{
		Kind: segmentation.Exact,
		Text: strings.Repeat("x", 100<<10),
	}}}
	for _, c := range []struct {
		change         func(p *partition)
		field, problem string
	}{
		{func(p *partition) { p.ID = "Rows" }, "id", `byte 0 is 'R', want [a-z0-9-]`},
		{func(p *partition) { p.ID = strings.Repeat("x", 49) }, "id", "49 bytes, want 1 to 48"},
		{func(p *partition) { p.Mode = 3 }, "mode", `3, want one of ["full" "simulate" "dry-run"]`},
		{func(p *partition) { p.Items = nil }, "items", "nil"},
		{func(p *partition) { p.Process = nil }, "process", "nil, want a function unless the mode is dry-run"},
		{func(p *partition) { p.Workers = 257 }, "workers", "257, want 0 to 256"},
		{func(p *partition) { p.Workers = -1 }, "workers", "-1, want 0 to 256"},
		{func(p *partition) { p.Threads = 257 }, "threads", "257, want 0 to 256"},
		{func(p *partition) { p.Threads = -1 }, "threads", "-1, want 0 to 256"},
		{func(p *partition) { p.Segmentation.Alphabets = []string{"z-a"} }, "segmentation.alphabets[0]", "descends"},
		{func(p *partition) { p.Segmentation.Depth = 9 }, "segmentation.depth", "1000000000"},
		{func(p *partition) { p.Segmentation = cut(0, 1) }, "segmentation.from", "0, want less than to"},
		{func(p *partition) { p.Rules = make([]work.Rule, 33) }, "rules", "33, want 32 at most"},
		{func(p *partition) { p.Rules[1].Code = strings.Repeat("x", 129) }, "rules[1].code", "exceed the limit of 128"},
		{func(p *partition) { p.Rules[1].React = 6 }, "rules[1].react", "6, want one of"},
		{func(p *partition) { p.Rules[1].Pass = true }, "rules[1].pass", `true, want false with the reaction "stop"`},
		{func(p *partition) { p.Rules[1] = work.Rule{React: work.Park} }, "rules[1].react",
			`"park", which streams alone have`},
		{func(p *partition) { p.Rules[1] = work.Rule{React: work.RetryLater} }, "rules[1].react",
			`"retry later", which streams alone have`},
		{func(p *partition) { p.Rules[0].Times = 101 }, "rules[0].times", "101, want 0 to 100"},
		{func(p *partition) { p.Rules[1].Times = -1 }, "rules[1].times", "-1, want 0"},
		{func(p *partition) { p.Rules[1] = work.Rule{Times: 1} }, "rules[1].times", `1, want 0 with the reaction "go on"`},
		{func(p *partition) { p.Rules[0].Backoff = time.Hour + 1 }, "rules[0].backoff", "want 0 to 1h"},
		{func(p *partition) { p.Rules[0].Backoff = -1 }, "rules[0].backoff", "want 0 to 1h"},
		{func(p *partition) { p.Rules[1].Backoff = 1 }, "rules[1].backoff", `want 0 with the reaction "stop"`},
		{func(p *partition) { p.Thresholds[0].Counter = "" }, "thresholds[0].counter", "0 bytes, want 1 to 64"},
		{func(p *partition) { p.Thresholds[0].Counter = strings.Repeat("x", 65) }, "thresholds[0].counter", "65 bytes"},
		{func(p *partition) { p.Thresholds[0].Counter = "failures:0" }, "thresholds[0].counter", "want [A-Za-z0-9._-]"},
		{func(p *partition) { p.Thresholds[0].Limit = -1 }, "thresholds[0].limit", "-1, want 0 or more"},
		{func(p *partition) { p.Thresholds = append(p.Thresholds, p.Thresholds[0]) }, "thresholds[1].counter",
			`"deletes" is that of thresholds[0]`},
		{func(p *partition) { p.Thresholds = make([]work.Threshold, 16) }, "thresholds", "17 with those of rules, want 16"},
		{func(p *partition) { p.ID = "other" }, "id", `"other" is that of partitions[0], too`},
	} {
		p := whole()
		c.change(&p)
		first := whole()
		first.ID = "other"
		err := work.Define("numbers", nil, first, p).Validate()
		invalid, ok := errors.AsType[*store.InvalidError](err)
		if !ok || invalid.Field != "partitions[1]."+c.field || !strings.Contains(invalid.Problem, c.problem) {
			t.Errorf("got %v, want partitions[1].%s: %s", err, c.field, c.problem)
		}
	}
	big := partition{Items: numbers, Process: nothing, Segmentation: large}
	for _, c := range []struct {
		work           *work.Work[int, int]
		field, problem string
	}{
		{work.Define("Numbers", nil, whole()), "id", "byte 0 is 'N'"},
		{work.Define("numbers", &work.Options{Policy: task.Policy{MaxAttempts: -1}}, whole()), "policy", "-1"},
		{work.Define[int, int]("numbers", nil), "partitions", "0, want 1 to 64"},
		{work.Define("numbers", nil, make([]partition, 65)...), "partitions", "65, want 1 to 64"},
		{work.Define("numbers", nil, big, big), "partitions", "204992 bytes exceed the limit of 196608"},
	} {
		err := c.work.Validate()
		invalid, ok := errors.AsType[*store.InvalidError](err)
		if !ok || invalid.Field != c.field || !strings.Contains(invalid.Problem, c.problem) {
			t.Errorf("got %v, want %s: %s", err, c.field, c.problem)
		}
	}
	if err := work.Define("numbers", nil, whole()).Validate(); err != nil {
		t.Error(err)
	}
}

func TestDefine_TakesTheZeroValueAsOneOfEverything(t *testing.T) {
	w := work.Define("numbers", nil,
		partition{Items: numbers, Process: nothing},
		partition{Items: numbers, Mode: work.DryRun, Rules: []work.Rule{{React: work.Stop, Times: 5}}},
	)
	if err := w.Validate(); err != nil {
		t.Fatal(err)
	}
	plan := w.Planned()
	first := plan.Partitions[0]
	if first.ID != "1" || first.Mode != work.Full || first.Buckets != 1 || first.Workers != 1 || first.Threads != 1 {
		t.Errorf("planned %+v", first)
	}
	second := plan.Partitions[1]
	if second.ID != "2" || !slices.Equal(second.Thresholds, []work.Threshold{{Counter: "failures:0", Limit: 4}}) {
		t.Errorf("planned %+v", second)
	}
}

func TestDefine_IsNotChangedThroughWhatItWasGiven(t *testing.T) {
	p := whole()
	q := partition{
		Items:        numbers,
		Process:      nothing,
		Segmentation: segmentation.Plan{Kind: segmentation.Explicit, Explicit: []segmentation.Content{{Upper: "m"}, {Lower: "m"}}},
	}
	w := work.Define("numbers", nil, p, q)
	before := w.Planned().Definition
	plan := w.Planned()
	for name, change := range map[string]func(){
		"rules":                      func() { p.Rules[0].Code = "else" },
		"thresholds":                 func() { p.Thresholds[0].Limit++ },
		"alphabets":                  func() { p.Segmentation.Alphabets[0] = "xyz" },
		"explicit buckets":           func() { q.Segmentation.Explicit[0].Upper = "n" },
		"thresholds of a plan":       func() { plan.Partitions[0].Thresholds[0].Limit++ },
		"alphabets of a plan":        func() { plan.Partitions[0].Segmentation.Alphabets[0] = "vw" },
		"explicit buckets of a plan": func() { plan.Partitions[1].Segmentation.Explicit[1].Lower = "k" },
	} {
		if change(); w.Planned().Definition != before {
			t.Fatalf("the definition has changed with %s", name)
		}
	}
}

// The hash is recorded with each run: one that changes with a release makes every node say that runs go on by another
// definition.
func TestDefinition_HasTheHashThatIsWrittenDown(t *testing.T) {
	for _, c := range []struct {
		work *work.Work[int, int]
		want string
	}{
		{work.Define("numbers", nil, partition{Items: numbers, Process: nothing}), "c64379cdecedfb2513441f37ce33d7ab"},
		{work.Define("numbers", nil, whole()), "b6f83f4cacaf6d2e921060b7cd86f8ac"},
	} {
		if got := c.work.Planned().Definition; got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestDefinition_OfOtherDataHasAnotherHash(t *testing.T) {
	seen := map[string]int{}
	for i, change := range []func(p *partition){
		func(p *partition) {},
		func(p *partition) { p.ID = "other" },
		func(p *partition) { p.Mode = work.Full },
		func(p *partition) { p.Count = nil },
		func(p *partition) { p.Key = nil },
		func(p *partition) { p.Workers = 3 },
		func(p *partition) { p.Threads = 2 },
		func(p *partition) { p.Segmentation.Depth = 1 },
		func(p *partition) { p.Segmentation.Alphabets = []string{"a-", "z"} },
		func(p *partition) { p.Segmentation.Alphabets = []string{"a", "-z"} },
		func(p *partition) { p.Segmentation = cut(10, 1) },
		func(p *partition) { p.Segmentation = cut(10, 2) },
		func(p *partition) { p.Segmentation = segmentation.Plan{Kind: segmentation.Numeric, To: 10, Size: 2} },
		func(p *partition) { p.Segmentation = segmentation.Plan{Kind: segmentation.Numeric, From: 10, Size: 2} },
		func(p *partition) { p.Segmentation = segmentation.Plan{Explicit: []segmentation.Content{{Lower: "a"}}} },
		func(p *partition) { p.Segmentation = segmentation.Plan{Explicit: []segmentation.Content{{Upper: "a"}}} },
		func(p *partition) { p.Segmentation = segmentation.Plan{Explicit: []segmentation.Content{{To: 1}}} },
		func(p *partition) { p.Rules = p.Rules[:1] },
		func(p *partition) { p.Rules[0].Code = "" },
		func(p *partition) { p.Rules[0].React = work.GoOn },
		func(p *partition) { p.Rules[0].Times = 3 },
		func(p *partition) { p.Rules[0].Backoff = 3 },
		func(p *partition) { p.Thresholds = nil },
		func(p *partition) { p.Thresholds[0].Limit = 8 },
		func(p *partition) { p.Thresholds[0].Counter = "delete" },
	} {
		p := whole()
		change(&p)
		hash := work.Define("numbers", nil, p).Planned().Definition
		if other, twice := seen[hash]; twice || len(hash) != 32 {
			t.Errorf("the changes %d and %d have the hash %s", other, i, hash)
		}
		seen[hash] = i
	}
	p := whole()
	p.Process, p.Items = nil, nil // code
	if _, same := seen[work.Define("numbers", nil, p).Planned().Definition]; !same {
		t.Error("the hash depends on code")
	}
	for _, other := range []*work.Work[int, int]{
		work.Define("numbers2", nil, whole()),
		work.Define("numbers", nil, whole(), whole()),
	} {
		if _, same := seen[other.Planned().Definition]; same {
			t.Error("works with other ids or partitions have the same hash")
		}
	}
}
