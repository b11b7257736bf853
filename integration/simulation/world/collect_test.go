package world

import (
	"slices"
	"testing"

	"taskledger/integration/robustness/history"
	"taskledger/internal/modeletcd"
	"taskledger/internal/wire"
	"taskledger/store"
	"taskledger/store/memarchive"
)

func slot() []byte {
	var w wire.Writer
	w.Array(2)
	w.Uint(1)
	w.Bytes(nil)
	return w.B
}

// Only what processes leave to a sweep, and what outlives them, may stay.
func TestMayStay_KnowsWhoseMailItIs(t *testing.T) {
	w := &world{setup: setup{shards: 4}, swept: map[string]int64{"gone": 10}}
	for name, test := range map[string]struct {
		key      string
		value    []byte
		revision int64
		stays    bool
	}{
		"meta":                            {"meta", nil, 1, true},
		"owner":                           {"owner/1", nil, 1, true},
		"entry":                           {"journal/1/0000000000000001", nil, 1, true},
		"snapshot":                        {"snapshot/1/5-7/00000000", nil, 1, true},
		"node":                            {"node/gone", nil, 11, false},
		"mail that was in time":           {"mailbox/1/gone/2", []byte{1}, 10, false},
		"mail that came when it had gone": {"mailbox/1/gone/2", []byte{1}, 11, true},
		"mail of somebody else":           {"mailbox/1/here/2", []byte{1}, 11, false},
		"answer that came late":           {"answer/gone/1/2", []byte{1}, 11, true},
		"empty slot":                      {"mailbox/1/here/2", slot(), 1, true},
		"a plan":                          {"answer/caller/4/2", []byte{1}, 11, true},
		"mail of nobody":                  {"mailbox/1//2", []byte{1}, 11, false},
		"what nobody knows":               {"strange", nil, 11, false},
	} {
		w.swept[""] = 0 // nobody has gone
		if got := w.mayStay(&modeletcd.Change{Key: cluster + "/" + test.key, Value: test.value, ModRevision: test.revision}); got != test.stays {
			t.Errorf("%s: may stay is %v", name, got)
		}
	}
	w.swept = map[string]int64{"gone": 10}
	if w.mayStay(&modeletcd.Change{Key: cluster + "/answer/caller/4/2", Value: []byte{1}, ModRevision: 11}) {
		t.Error("a plan may stay although everybody could remove his mail")
	}
}

// What a reader finds is the archive, and then what the journal still holds: a gap or a repetition shows.
func TestStored_IsArchiveAndJournal(t *testing.T) {
	written := &history.Journals{Entries: [][]history.Record{{{Number: 1, Revision: 11}, {Number: 2, Revision: 12}, {Number: 3, Revision: 13}}}}
	key := func(n uint64) string {
		return cluster + "/journal/0/" + []string{1: "0000000000000001", 2: "0000000000000002", 3: "0000000000000003"}[n]
	}
	archived := func(numbers ...uint64) (s memarchive.Segment) {
		for _, n := range numbers {
			s.Entries = append(s.Entries, store.Record{Head: store.Head{Number: n, Revision: int64(10 + n)}})
			s.Head.Entry = n
		}
		return s
	}
	for name, test := range map[string]struct {
		segments []memarchive.Segment
		held     []uint64
		want     []uint64
	}{
		"journal alone":         {nil, []uint64{1, 2, 3}, []uint64{1, 2, 3}},
		"trimmed":               {[]memarchive.Segment{archived(1, 2)}, []uint64{3}, []uint64{1, 2, 3}},
		"not trimmed yet":       {[]memarchive.Segment{archived(1, 2)}, []uint64{1, 2, 3}, []uint64{1, 2, 3}},
		"trimmed too far":       {[]memarchive.Segment{archived(1)}, []uint64{3}, []uint64{1, 3}},
		"archived twice":        {[]memarchive.Segment{archived(1), archived(1, 2)}, []uint64{3}, []uint64{1, 1, 2, 3}},
		"removed, not archived": {nil, []uint64{2, 3}, []uint64{2, 3}},
	} {
		w := &world{archive: memarchive.New()}
		w.archive.Alter(0, func([]memarchive.Segment) []memarchive.Segment { return test.segments })
		held := map[string]history.Record{}
		for _, n := range test.held {
			held[key(n)] = history.Record{Number: n, Revision: int64(10 + n)}
		}
		var got []uint64
		for _, r := range w.stored(0, written, held) {
			got = append(got, r.Number)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: entries %d, want %d", name, got, test.want)
		}
	}
}
