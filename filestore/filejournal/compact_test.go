package filejournal_test

import (
	"testing"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/internal/faultdisk"
	"taskledger/filestore/journal"
	"taskledger/store"
)

// The first record of a segment has a line for each shard, so of many shards it is most of what a small segment keeps.
func TestWriteSnapshot_WritesASegmentAnewOnceAndNotForEver(t *testing.T) {
	d, o := faultdisk.New(), filejournal.Options{SegmentBytes: 16 << 10}
	var j *filejournal.Journal
	reopen := func() {
		t.Helper()
		var err error
		if j != nil {
			err = j.Close()
		}
		if err == nil {
			j, err = filejournal.OpenLayer(d, o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	next := map[int]uint64{}
	add := func(shard, bytes int) {
		t.Helper()
		next[shard]++
		e := journal.Entry{Shard: shard, Number: next[shard], Revision: int64(next[shard]), Data: make([]byte, bytes)}
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	// snapshot returns how many changes of the disk a snapshot of shard 0 takes.
	snapshot := func(first uint64) int {
		t.Helper()
		before := d.Changes()
		if err := j.WriteSnapshot(journal.Key{}, journal.Snapshot{First: first}); err != nil {
			t.Fatal(err)
		}
		return d.Changes() - before
	}
	reopen()
	for shard := range store.MaxShards {
		add(shard, 100)
	}
	snapshot(1)
	alone := snapshot(1)
	for range 4 {
		for range 16 {
			add(0, 1<<10)
		}
		add(1, 10) // it stays
	}
	used := d.Used()
	if n := snapshot(next[0]); n <= alone || d.Used() > used-3*o.SegmentBytes {
		t.Errorf("a snapshot that lets most entries go takes %d changes, and leaves %d of %d bytes", n, d.Used(), used)
	}
	for _, when := range []string{"at once", "after a restart"} {
		if n := snapshot(next[0]); n != alone {
			t.Errorf("%s, a snapshot that lets nothing go takes %d changes, want %d", when, n, alone)
		}
		reopen()
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
