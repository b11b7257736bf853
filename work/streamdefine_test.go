package work_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"taskledger/store"
	"taskledger/work"
	"taskledger/work/feed"
)

func TestDefineStream_NamesFieldAndLimit(t *testing.T) {
	pushed := func(s *stream) {
		s.Changes = nil
		s.Source = func(context.Context, int) (feed.Source, error) { return nil, errDisk }
		s.Convert = func(context.Context, int, feed.Message) ([]change, error) { return nil, nil }
	}
	for _, c := range []struct {
		change         func(s *stream)
		field, problem string
	}{
		{func(s *stream) { s.ID = "Rows" }, "id", "byte 0 is 'R'"},
		{func(s *stream) { s.Changes = nil }, "changes", "nil, want a function"},
		{func(s *stream) { s.Process = nil }, "process", "nil, want a function unless the mode is dry-run"},
		{func(s *stream) { s.Threads = 257 }, "threads", "257, want 0 to 256"},
		{func(s *stream) { s.Batch = -1 }, "batch", "-1, want 0 or more"},
		{func(s *stream) { s.Batch, s.Imprecise = 10, true }, "batch", "10, want 0 with imprecise tokens"},
		{func(s *stream) { s.Idle = time.Second }, "idle", "1s, want 0 without a source"},
		{func(s *stream) { s.Rules = []work.Rule{{React: work.Retry, Pass: true}} }, "rules[0].pass", `with the reaction "retry"`},
		{func(s *stream) {
			s.Rules = []work.Rule{{}, {React: work.RetryLater}}
			s.Thresholds = []work.Threshold{{Counter: "c"}}
		}, "rules[1].react", `"retry later", want no reaction that holds changes with thresholds`},
		{func(s *stream) {
			s.Convert = func(context.Context, int, feed.Message) ([]change, error) { return nil, nil }
		}, "convert", "a function, want nil without a source"},
		{func(s *stream) {
			changes := s.Changes
			pushed(s)
			s.Changes = changes
		}, "source", "a function, want nil with changes"},
		{func(s *stream) { pushed(s); s.Convert = nil }, "convert", "nil, want a function"},
		{func(s *stream) { pushed(s); s.Mode = work.Simulate }, "mode", "simulate, want full with a source"},
		{func(s *stream) { pushed(s); s.Mode = work.DryRun }, "mode", "dry-run, want full with a source"},
		{func(s *stream) { pushed(s); s.Imprecise = true }, "imprecise", "true, want false with a source"},
		{func(s *stream) { pushed(s); s.MoveToken = true }, "move_token", "true, want false with a source"},
		{func(s *stream) { pushed(s); s.Idle = -1 }, "idle", "-1ns, want 0 or more"},
	} {
		s := objects(1).stream(1)
		c.change(&s)
		err := work.DefineStream("sync", nil, s).Validate()
		invalid, ok := errors.AsType[*store.InvalidError](err)
		if !ok || invalid.Field != "streams[0]."+c.field || !strings.Contains(invalid.Problem, c.problem) {
			t.Errorf("got %v, want streams[0].%s: %s", err, c.field, c.problem)
		}
	}
}

func TestDefineStream_RefusesStreamsThatDoNotGoTogether(t *testing.T) {
	full, simulated, imprecise := objects(1).stream(1), objects(1).stream(1), objects(1).stream(1)
	simulated.Mode, imprecise.Imprecise, imprecise.Mode = work.Simulate, true, work.Simulate
	moves := simulated
	moves.MoveToken = true
	pushed := stream{
		Source:  func(context.Context, int) (feed.Source, error) { return nil, errDisk },
		Convert: func(context.Context, int, feed.Message) ([]change, error) { return nil, nil },
		Process: full.Process,
	}
	for name, c := range map[string]struct {
		streams []stream
		field   string // "" = they go together
	}{
		"one":                    {[]stream{full}, ""},
		"think, then do":         {[]stream{simulated, full}, ""},
		"none":                   {nil, "partitions"},
		"two that move":          {[]stream{full, full}, "streams[1].mode"},
		"a simulation and a one": {[]stream{moves, full}, "streams[1].mode"},
		"two forms":              {[]stream{imprecise, full}, "streams[1]"},
		"pushed":                 {[]stream{pushed}, ""},
		"two pushed":             {[]stream{pushed, pushed}, "streams"},
	} {
		err := work.DefineStream("sync", nil, c.streams...).Validate()
		invalid, is := errors.AsType[*store.InvalidError](err)
		if is && invalid.Field != c.field || !is && (err != nil || c.field != "") {
			t.Errorf("%s: %v, want that it names %q", name, err, c.field)
		}
	}
}

func TestDefineStream_PlansOneBucketAndItsForm(t *testing.T) {
	s := objects(1).stream(3)
	s.Mode, s.MoveToken = work.Simulate, true
	p := work.DefineStream("sync", nil, s).Planned().Partitions[0]
	if p.Form != work.Precise || !p.MovesToken || p.Buckets != 1 || p.Workers != 1 || p.Threads != 3 {
		t.Errorf("%+v", p)
	}
	hashes := map[string]int{}
	for i, change := range []func(s *stream){
		func(*stream) {},
		func(s *stream) { s.Imprecise = true },
		func(s *stream) { s.Batch = 7 },
		func(s *stream) { s.MoveToken = false },
		func(s *stream) { s.Rules = []work.Rule{{React: work.Park}} },
		func(s *stream) { s.Rules = []work.Rule{{React: work.Park, Pass: true}} },
		func(s *stream) { s.Rules = []work.Rule{{React: work.RetryLater}} },
	} {
		other := s
		change(&other)
		hash := work.DefineStream("sync", nil, other).Planned().Definition
		if first, same := hashes[hash]; same {
			t.Errorf("definitions %d and %d have the same hash", first, i)
		}
		hashes[hash] = i
	}
}
