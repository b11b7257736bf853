package main

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/events"
	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/cluster"
	"taskledger/integration/robustness/fault"
	"taskledger/integration/robustness/history"
	"taskledger/store"
)

// chainOf makes the first n entries of shard 0, each of its own revision.
func chainOf(t *testing.T, n int) (all []history.Record) {
	t.Helper()
	var before events.Entry
	for number := range uint64(n) {
		var b events.Builder
		b.Reset(events.Entry{Number: number + 1, Epoch: 1, Owner: "n-1", Time: 1_800_000_000_000, Prev: before.Hash})
		b.Add(events.Event{Task: events.TaskID(fmt.Sprint("a-", number)), Seq: 1, Body: &events.Created{Behavior: "work"}})
		data, err := b.Seal()
		if err != nil {
			t.Fatal(err)
		}
		before = b.Entry
		all = append(all, history.Record{Number: number + 1, Revision: 10 * int64(number+1), Created: 10 * int64(number+1), Data: data})
	}
	return all
}

// putOf is the write of an entry of shard 0.
func putOf(r history.Record) *clientv3.Event {
	e := eventOf(clientv3.EventTypePut, r.Number, r.Revision)
	e.Kv.CreateRevision, e.Kv.Value = r.Created, r.Data
	return e
}

// trimOf is the end of one.
func trimOf(number uint64, revision int64) *clientv3.Event {
	return eventOf(clientv3.EventTypeDelete, number, revision)
}

func eventOf(kind mvccpb.Event_EventType, number uint64, revision int64) *clientv3.Event {
	key := fmt.Sprintf("%sjournal/0/%016x", cluster.KeyPrefix, number)
	return &clientv3.Event{Type: kind, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision}}
}

// fakeArchive is one that fails a few times. It keeps shard 0 alone.
type fakeArchive struct {
	store.ArchiveReader
	fails   []error
	entries []history.Record
}

func (a *fakeArchive) ReadArchive(_ context.Context, shard int, _ uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if len(a.fails) > 0 {
			err := a.fails[0]
			a.fails = a.fails[1:]
			yield(store.Record{}, err)
			return
		}
		for _, r := range a.entries {
			if shard != 0 || !yield(store.Record{Head: store.Head{Number: r.Number, Revision: r.Revision}, Data: r.Data}, nil) {
				return
			}
		}
	}
}

// always fails as often as an archive is asked.
func always(err error) []error { return slices.Repeat([]error{err}, 1000) }

// Archive and journal together hold every entry once; the checkers see whatever is missing or there twice.
func TestUnite_ShowsWhatIsNotThereOnce(t *testing.T) {
	entries := chainOf(t, 5)
	other := slices.Clone(entries)
	for i := range other {
		other[i].Data = bytes.Clone(other[i].Data)
		other[i].Data[len(other[i].Data)-1] ^= 1
	}
	again := entries[2]
	again.Revision++ // of the key that was made before
	for name, row := range map[string]struct {
		written []history.Record // nil: every entry once
		trimmed uint64           // up to this entry
		archive fakeArchive
		held    []history.Record
		want    string // the invariant; "" = none
	}{
		"nothing is archived":             {held: entries},
		"no stream":                       {held: entries, archive: fakeArchive{fails: always(store.ErrNoArchive)}},
		"archived and trimmed":            {trimmed: 3, held: entries[3:], archive: fakeArchive{entries: entries[:3]}},
		"archived and not trimmed":        {trimmed: 1, held: entries[1:], archive: fakeArchive{entries: entries[:3]}},
		"away for a while":                {trimmed: 3, held: entries[3:], archive: fakeArchive{entries: entries[:3], fails: []error{store.ErrUnavailable, store.ErrNoArchive}}},
		"trimmed and not archived":        {trimmed: 3, held: entries[3:], archive: fakeArchive{entries: entries[:2]}, want: "1 entries"},
		"archived otherwise":              {trimmed: 3, held: entries[3:], archive: fakeArchive{entries: other[:3]}, want: "1 entries"},
		"archive and journal differ":      {trimmed: 1, held: entries[1:], archive: fakeArchive{entries: []history.Record{entries[0], other[1]}}, want: "1 entries"},
		"gone from the journal's end":     {held: entries[:4], want: "1 entries"},
		"held, and never written":         {written: entries[:4], held: entries, want: "1 entries"},
		"written twice":                   {written: append(entries[:3:3], again), held: append(entries[:2:2], again), want: "1 entries"},
		"archive away for good":           {trimmed: 3, held: entries[3:], archive: fakeArchive{fails: always(store.ErrUnavailable)}, want: "12 archive"},
		"archive away, nothing trimmed":   {held: entries, archive: fakeArchive{fails: always(store.ErrUnavailable)}, want: "12 archive"},
		"trimmed, and no archive":         {trimmed: 3, held: entries[3:], archive: fakeArchive{fails: always(store.ErrNoArchive)}, want: "12 archive"},
		"archive is damaged":              {held: entries, archive: fakeArchive{fails: []error{events.ErrDamaged}}, want: "12 archive"},
		"the archive's beginning is gone": {held: entries, archive: fakeArchive{fails: []error{store.ErrTrimmed}}, want: "12 archive"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r := &cluster.Cluster{Keys: &cluster.Keys{}}
			if row.written == nil {
				row.written = entries
			}
			for _, e := range row.written {
				r.Keys.Hear(clientv3.WatchResponse{Events: []*clientv3.Event{putOf(e)}})
			}
			for number := range row.trimmed {
				r.Keys.Hear(clientv3.WatchResponse{Events: []*clientv3.Event{trimOf(number+1, 100+int64(number))}})
			}
			r.Keys.Hear(clientv3.WatchResponse{Events: []*clientv3.Event{{Kv: &mvccpb.KeyValue{Key: []byte(cluster.MarkKey), ModRevision: 200}}}})
			held := history.Journals{Member: "etcd1", Entries: make([][]history.Record, cluster.Shards)}
			held.Entries[0] = row.held
			h := &history.Run{Info: history.Info{Shards: cluster.Shards}}
			if err := unite(ctx, r, &row.archive, h, []history.Journals{held}, 200); err != nil {
				t.Fatal(err)
			}
			if h.Info.Trimmed != int(row.trimmed) {
				t.Errorf("%d entries were trimmed, want %d", h.Info.Trimmed, row.trimmed)
			}
			h.Damage = r.Damage
			found := slices.DeleteFunc(check.All(h), func(v check.Violation) bool { return v.Invariant != "1 entries" && v.Invariant != check.Archived })
			if row.want == "" && len(found) > 0 || row.want != "" && !slices.ContainsFunc(found, func(v check.Violation) bool { return v.Invariant == row.want }) {
				t.Errorf("found %v, want %q", found, row.want)
			}
		})
	}
}

// What is written and archived after the revision of the record is none of it.
func TestUnite_EndsWithTheRevision(t *testing.T) {
	entries := chainOf(t, 4)
	r := &cluster.Cluster{Keys: &cluster.Keys{}}
	for _, e := range entries {
		r.Keys.Hear(clientv3.WatchResponse{Events: []*clientv3.Event{putOf(e)}})
	}
	h := &history.Run{}
	held := history.Journals{Member: "etcd1", Entries: make([][]history.Record, cluster.Shards)}
	if err := unite(t.Context(), r, &fakeArchive{entries: entries}, h, []history.Journals{held}, entries[2].Revision); err != nil {
		t.Fatal(err)
	}
	if h.Info.Archived != 4 || len(h.Members) != 2 {
		t.Fatalf("%d archived, %d journals", h.Info.Archived, len(h.Members))
	}
	for _, m := range h.Members {
		if n := len(m.Entries[0]); n != 3 {
			t.Errorf("%s has %d entries, want 3", m.Member, n)
		}
	}
}

// Nodes archive where journals grow and NATS is there.
func TestArchives_WhereJournalsGrow(t *testing.T) {
	for _, row := range []struct {
		seed  uint64
		fault string
		want  bool
	}{{2, "nats-restart", true}, {1, "nats-restart", false}, {2, "nats-absent", false}, {2, "etcd-full", false}} {
		s := cluster.Settings{Seed: row.seed, Kinds: []string{row.fault}, Members: 1, Duration: 10 * time.Second}
		p, err := fault.NewPlan(rand.New(rand.NewPCG(s.Seed, 0)), s)
		if err != nil {
			t.Fatal(err)
		}
		if r := (&cluster.Cluster{Settings: s, Needs: p.Needs()}); r.Archives() != row.want {
			t.Errorf("seed %d, %s: %t, want %t", row.seed, row.fault, r.Archives(), row.want)
		}
	}
}
