package ledger_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/store/memarchive"
)

// A cursor of another cluster would otherwise leave out the events up to it, without a word.
func TestFollow_RefusesACursorThatIsAheadOfAJournal(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(4)
	var head ledger.Cursor
	for shard := range pastShards {
		all := p.Records(shard)
		head = append(head, all[len(all)-1].Number)
	}
	p.keep(0)
	follow := func(c ledger.Cursor) (batches int, err error) {
		for _, err := range p.reader(p.archive).Ledger().Follow(testcluster.Within(t), c) {
			if err != nil {
				return batches, err
			}
			if batches++; batches == 2 {
				break
			}
		}
		return batches, nil
	}
	for _, ahead := range []ledger.Cursor{{head[0] + 1, 0}, {0, head[1] + 1}, {head[0] + 1000, head[1] + 1000}} {
		batches, err := follow(ahead)
		if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != "cursor" || batches > 0 {
			t.Errorf("cursor %v, the journals end with %v: %d batches, %v", ahead, head, batches, err)
		}
	}
	for _, within := range []ledger.Cursor{{0, 0}, {1, 1}, {head[0] - 1, head[1] - 1}} {
		if batches, err := follow(within); batches != 2 || err != nil {
			t.Errorf("cursor %v, the journals end with %v: %d batches, %v", within, head, batches, err)
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
