package ledger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
)

func replayed(t *testing.T, c *engine.Client, o ledger.ReplayOptions) (all []ledger.Event) {
	t.Helper()
	for ev, err := range c.Ledger().Replay(testcluster.Within(t), o) {
		if err != nil {
			t.Fatalf("replay of %+v: %v", o, err)
		}
		all = append(all, ev)
	}
	return all
}

func TestReplay_IsInTheOrderOfCommitsFromArchiveAndJournal(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	ids := p.spread(6)
	want := replayed(t, p.node.Client, ledger.ReplayOptions{})
	if len(want) != 3*len(ids) {
		t.Fatalf("%d events of %d tasks", len(want), len(ids))
	}
	for i, ev := range want {
		if ev.Task != ids[i/3] {
			t.Errorf("event %d is of %s, want %s", i, ev.Task, ids[i/3])
		}
	}
	p.keep(0)
	p.keep(1)
	got := replayed(t, p.reader(p.archive), ledger.ReplayOptions{})
	if !slices.EqualFunc(got, want, func(a, b ledger.Event) bool { return a.Position == b.Position && a.Kind() == b.Kind() }) {
		t.Errorf("from the archive: %d events, want the same %d", len(got), len(want))
	}
	for _, err := range p.reader(nil).Ledger().Replay(testcluster.Within(t), ledger.ReplayOptions{}) {
		if !errors.Is(err, store.ErrTrimmed) {
			t.Errorf("without the archive: %v", err)
		}
		break
	}
}

func TestReplay_SelectsByTimeTaskBehaviorAndStatus(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	ids := p.spread(5)
	c := p.node.Client
	all := replayed(t, c, ledger.ReplayOptions{})
	middle := all[len(all)/2].At
	for _, row := range []struct {
		what    string
		options ledger.ReplayOptions
		is      func(ev ledger.Event) bool
	}{
		{"from", ledger.ReplayOptions{From: middle.Time()}, func(ev ledger.Event) bool { return ev.At >= middle }},
		{"to", ledger.ReplayOptions{To: middle.Time()}, func(ev ledger.Event) bool { return ev.At < middle }},
		{"from the future", ledger.ReplayOptions{From: time.Now().Add(time.Hour)}, func(ledger.Event) bool { return false }},
		{"from the beginning", ledger.ReplayOptions{From: all[0].At.Time()}, func(ledger.Event) bool { return true }},
		{"task", ledger.ReplayOptions{Task: ids[1]}, func(ev ledger.Event) bool { return ev.Task == ids[1] }},
		{"behavior", ledger.ReplayOptions{Behavior: "job"}, func(ledger.Event) bool { return true }},
		{"another behavior", ledger.ReplayOptions{Behavior: "other"}, func(ledger.Event) bool { return false }},
		{"status", ledger.ReplayOptions{Status: projection.Running}, func(ev ledger.Event) bool { return ev.Kind() == events.KindStarted }},
		{"all of them", ledger.ReplayOptions{From: middle.Time(), Task: ids[4], Behavior: "job", Status: projection.Success},
			func(ev ledger.Event) bool { return ev.Task == ids[4] && ev.Kind() == events.KindSucceeded }},
	} {
		var want []events.Position
		for _, ev := range all {
			if row.is(ev) {
				want = append(want, ev.Position)
			}
		}
		var got []events.Position
		for _, ev := range replayed(t, c, row.options) {
			got = append(got, ev.Position)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", row.what, got, want)
		}
	}
}
