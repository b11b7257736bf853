package work_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/behaviors"
	"taskledger/work"
	"taskledger/work/feed"
	"taskledger/work/feed/memfeed"
)

// A source that removes what is acknowledged would not have the message any more when its hold is resumed.
func TestAsyncUpdate_WhatIsTooLongToBeHeldStopsItWhereItsSourceRemovesIt(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	for name, c := range map[string]struct {
		message string
		source  func(*memfeed.Source) feed.Source
		why     string
	}{
		"poison":   {"!" + long, nil, "exceed the limit of 196608"},
		"a change": {"k" + long, nil, "exceed the limit of 196608"},
		"above the limit": {"k", func(s *memfeed.Source) feed.Source { return large{s} },
			"the message is above the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			withThreads(t, func(t *testing.T, threads int64) {
				f := memfeed.New(memfeed.Config{Removes: true})
				f.Publish("s", []byte("a"))
				f.Publish("s", []byte(c.message))
				f.Publish("s", []byte("!short"))
				s := work.Stream[int, string]{
					Threads: threads,
					Idle:    time.Minute,
					Rules:   []work.Rule{{Code: "busy", React: work.RetryLater}},
					Source: func(context.Context, int) (feed.Source, error) {
						if c.source != nil {
							return c.source(f.Open()), nil
						}
						return f.Open(), nil
					},
					Convert: func(_ context.Context, _ int, m feed.Message) ([]work.Change[string], error) {
						if m.Data[0] == '!' {
							return nil, errDisk
						}
						return []work.Change[string]{{Key: string(m.Data[:1]), Value: string(m.Data)}}, nil
					},
					Process: func(_ context.Context, c work.Change[string]) error {
						if len(c.Value) > 1 {
							return behaviors.Code("busy", errDisk, nil)
						}
						return nil
					},
				}
				r := newStreamRecord()
				attempt := func() error {
					a := r.attempt()
					_, err := work.DefineStream("sync", nil, s).Attempt(t.Context(), a, 0, work.Attempt{Stream: a})
					return err
				}
				for range 2 {
					err := attempt()
					if err == nil || !strings.Contains(err.Error(), "message 2 cannot be held by its place alone") ||
						!strings.Contains(err.Error(), c.why) {
						t.Fatalf("%v, want that message 2 cannot be held", err)
					}
				}
				if slices.Contains(f.Acknowledged(), 2) {
					t.Error("the message was acknowledged, and is lost")
				}
				s.Rules = []work.Rule{{Code: "busy", React: work.GoOn}, {Code: "failed", React: work.Park}}
				if name != "a change" {
					s.Rules[1].React = work.GoOn
				}
				if err := attempt(); err != nil {
					t.Fatal(err)
				}
				if got := f.Acknowledged(); !slices.Equal(got, upTo(3)) {
					t.Errorf("acknowledged %d", got)
				}
				if len(r.wrong) > 0 {
					t.Errorf("%q", r.wrong)
				}
			})
		})
	}
}
