package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
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
		{"status", ledger.ReplayOptions{Status: task.Running}, func(ev ledger.Event) bool { return ev.Kind() == events.KindStarted }},
		{"all of them", ledger.ReplayOptions{From: middle.Time(), Task: ids[4], Behavior: "job", Status: task.Success},
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

// A subscriber of the public messages keeps the last position of each shard, and reads what it has missed.
func TestReplay_AfterPositionsTellsWhatCameSinceInEachShard(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	p.keep(0)
	c := p.reader(p.archive)
	all := replayed(t, c, ledger.ReplayOptions{})
	last := map[uint16]events.Position{}
	for cut, seen := range all {
		last[seen.Position.Shard] = seen.Position
		var after, want, got []events.Position
		for _, at := range last {
			after = append(after, at)
		}
		for _, ev := range all[cut+1:] {
			want = append(want, ev.Position)
		}
		for _, ev := range replayed(t, c, ledger.ReplayOptions{After: after}) {
			got = append(got, ev.Position)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %v: %v, want %v", after, got, want)
		}
	}
	end := all[len(all)-1].Position
	for what, wrong := range map[string][]events.Position{
		"not written yet": {{Shard: end.Shard, Ref: events.RefOf(end.Ref.Entry()+1, 0)}},
		"another":         {end, end},
		"has 2 shards":    {{Shard: pastShards, Ref: end.Ref}},
		"count from 1":    {{Shard: 0}},
	} {
		for _, err := range c.Ledger().Replay(testcluster.Within(t), ledger.ReplayOptions{After: wrong}) {
			invalid, is := errors.AsType[*store.InvalidError](err)
			if !is || invalid.Field != "after" || !strings.Contains(err.Error(), what) {
				t.Errorf("after %v: %v, want %q", wrong, err, what)
			}
		}
	}
}

// Of a shard that has a position a time to begin with leaves out nothing: what the subscriber has missed may be older.
func TestReplay_FromIsForShardsWithoutAPosition(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(6)
	c := p.node.Client
	all := replayed(t, c, ledger.ReplayOptions{})
	for _, from := range []time.Time{all[len(all)/2].At.Time(), time.Now().Add(time.Hour)} {
		for _, after := range all {
			for _, behavior := range []string{"", "job"} {
				var want, got []events.Position
				for _, ev := range all {
					if ev.Position.Shard == after.Position.Shard && ev.Position.Ref > after.Position.Ref ||
						ev.Position.Shard != after.Position.Shard && !ev.At.Time().Before(from) {
						want = append(want, ev.Position)
					}
				}
				o := ledger.ReplayOptions{From: from, After: []events.Position{after.Position}, Behavior: behavior}
				for _, ev := range replayed(t, c, o) {
					got = append(got, ev.Position)
				}
				if !slices.Equal(got, want) {
					t.Errorf("from %s, after %s, behavior %q: %v, want %v", from, after.Position, behavior, got, want)
				}
			}
		}
	}
}

// Where the first entries were dropped the error says from when on all are there, and that time is one.
func TestReplay_OfWhatWasDroppedSaysWhereToBegin(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(4)
	for shard := range pastShards {
		all := p.Records(shard)
		for _, rec := range all[:len(all)/2] {
			p.Remove(shard, rec.Number)
		}
	}
	c := p.reader(nil)
	var since time.Time
	for _, o := range []ledger.ReplayOptions{{}, {From: time.Unix(1, 0)}, {Records: []events.Record{events.OfSettings}}} {
		for _, err := range c.Ledger().Replay(testcluster.Within(t), o) {
			if !errors.Is(err, store.ErrTrimmed) || strings.Contains(err.Error(), "archive") {
				t.Fatalf("%+v: %v", o, err)
			}
			_, told, _ := strings.Cut(err.Error(), "begin at ")
			told, _, _ = strings.Cut(told, " or later")
			var unread error
			if since, unread = time.Parse(time.RFC3339, told); unread != nil {
				t.Fatalf("%v: %v", err, unread)
			}
		}
	}
	replayed(t, c, ledger.ReplayOptions{From: since})
	for _, err := range c.Ledger().Follow(testcluster.Within(t), nil) {
		if !errors.Is(err, store.ErrTrimmed) || !strings.Contains(err.Error(), "begin at") {
			t.Errorf("follow from the beginning: %v", err)
		}
	}
	first, err := c.Ledger().FirstCursor(testcluster.Within(t))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for b, err := range c.Ledger().Follow(testcluster.Within(t), first) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; b.Entry != first[b.Shard]+1 {
			t.Errorf("after %v comes entry %d of shard %d", first, b.Entry, b.Shard)
		}
		break
	}
	if seen == 0 || first[0] == 0 || first[1] == 0 {
		t.Errorf("first cursor %v, %d batches", first, seen)
	}
}
