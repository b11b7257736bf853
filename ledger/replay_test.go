package ledger_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/store"
	"taskledger/store/memarchive"
)

func replayed(t *testing.T, c *engine.Client, o ledger.ReplayOptions) (all []events.Event) {
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
	if !slices.EqualFunc(got, want, func(a, b events.Event) bool { return a.Position == b.Position && a.Kind() == b.Kind() }) {
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
		is      func(ev events.Event) bool
	}{
		{"from", ledger.ReplayOptions{From: middle.Time()}, func(ev events.Event) bool { return ev.At >= middle }},
		{"to", ledger.ReplayOptions{To: middle.Time()}, func(ev events.Event) bool { return ev.At < middle }},
		{"from the future", ledger.ReplayOptions{From: time.Now().Add(time.Hour)}, func(events.Event) bool { return false }},
		{"from the beginning", ledger.ReplayOptions{From: all[0].At.Time()}, func(events.Event) bool { return true }},
		{"task", ledger.ReplayOptions{Task: ids[1]}, func(ev events.Event) bool { return ev.Task == ids[1] }},
		{"behavior", ledger.ReplayOptions{Behavior: "job"}, func(events.Event) bool { return true }},
		{"another behavior", ledger.ReplayOptions{Behavior: "other"}, func(events.Event) bool { return false }},
		{"status", ledger.ReplayOptions{Status: projection.Running}, func(ev events.Event) bool { return ev.Kind() == events.KindStarted }},
		{"all of them", ledger.ReplayOptions{From: middle.Time(), Task: ids[4], Behavior: "job", Status: projection.Success},
			func(ev events.Event) bool { return ev.Task == ids[4] && ev.Kind() == events.KindSucceeded }},
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

// A consumer that keeps its cursor with its state sees every event once, whatever stops it.
func TestFollow_YieldsEveryEventOnceAcrossStops(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(4)
	p.recordNoEvent(1)
	p.keep(0)
	c := p.reader(p.archive)
	var cursor ledger.Cursor
	var seen []events.Position
	follow := func(until int) {
		t.Helper()
		for b, err := range c.Ledger().Follow(testcluster.Within(t), cursor) {
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Events) == 0 {
				t.Errorf("entry %d of shard %d has no events", b.Entry, b.Shard)
			}
			for _, ev := range b.Events {
				seen = append(seen, ev.Position)
			}
			if cursor = b.Cursor; cursor[b.Shard] != b.Entry {
				t.Errorf("cursor %v after entry %d of shard %d", cursor, b.Entry, b.Shard)
			}
			if len(seen) >= until {
				return
			}
		}
	}
	follow(1)
	follow(5)
	follow(12)
	p.spread(1)
	follow(15)
	want := map[events.Position]bool{}
	for _, ev := range replayed(t, c, ledger.ReplayOptions{}) {
		want[ev.Position] = true
	}
	for _, at := range seen {
		if !want[at] {
			t.Errorf("event %s twice, or never committed", at)
		}
		delete(want, at)
	}
	if len(want) > 0 {
		t.Errorf("%d events were not seen", len(want))
	}
}

// slipping is a store in which something happens when a shard is first followed.
type slipping struct {
	store.Store
	shard int
	once  sync.Once
	slip  func()
}

func (s *slipping) Follow(ctx context.Context, shard int, from uint64) iter.Seq2[store.Record, error] {
	if shard == s.shard {
		s.once.Do(s.slip)
	}
	return s.Store.Follow(ctx, shard, from)
}

// A consumer that is slow is overtaken by trims: what it has not seen is in the archive by then.
func TestFollow_GoesOnInTheArchiveWhenTheJournalWasTrimmedPastIt(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	ids := p.spread(4)
	archive := memarchive.New()
	s := &slipping{Store: trimmed{p.Store}, shard: 1}
	s.slip = func() {
		ids = append(ids, p.spread(6)...)
		all := p.Records(1)
		if _, err := archive.Archive(testcluster.Within(t), 1, store.ArchiveHead{}, all); err != nil {
			t.Error(err)
		}
		for _, rec := range all[:len(all)-1] {
			p.Remove(1, rec.Number)
		}
	}
	c := p.run(engine.ClientConfig{Store: s, Archive: archive})
	seen := map[events.Position]bool{}
	for b, err := range c.Ledger().Follow(testcluster.Within(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range b.Events {
			if seen[ev.Position] {
				t.Errorf("event %s twice", ev.Position)
			}
			seen[ev.Position] = true
		}
		if len(seen) == 3*10 {
			break
		}
	}
	if len(seen) != 3*len(ids) {
		t.Errorf("%d events of %d tasks", len(seen), len(ids))
	}
}

func TestFollow_EndsWithItsContextAndRefusesForeignCursors(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(1)
	ctx, stop := context.WithCancel(testcluster.Within(t))
	defer stop()
	count := 0
	for b, err := range p.node.Ledger().Follow(ctx, nil) {
		if err != nil {
			t.Errorf("an error after the end: %v", err)
		}
		switch count += len(b.Events); count {
		case 3:
			p.spread(1)
		case 6:
			stop()
		}
	}
	if count != 6 {
		t.Errorf("%d events, want 3 of the past and 3 of the present", count)
	}
	for _, err := range p.node.Ledger().Follow(testcluster.Within(t), ledger.Cursor{1, 2, 3}) {
		var invalid *store.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("a cursor of three shards: %v", err)
		}
	}
}
