package journaltest

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"taskledger/filestore/journal"
)

const (
	busyShards  = 3
	busyEntries = 120
	// keptBehind counts the entries before the last one that a snapshot leaves.
	keptBehind = 10
)

var together = map[string]func(*world){
	"Together/EntriesAndSnapshotsAreWrittenAndRead": func(w *world) {
		notes := &counted{w: w, of: journal.Key{Shard: journal.Notes}}
		reads := []func(){notes.read}
		writes := []func(){func() {
			for n := uint64(1); n <= busyEntries; n++ {
				notes.write(n, 0)
			}
		}}
		for n := range busyShards {
			s := &busy{w: w, shard: n, snapshots: counted{w: w, of: journal.Key{Shard: n, Slot: n % journal.Slots}}}
			reads = append(reads, s.read, s.snapshots.read)
			writes = append(writes, s.write)
		}
		var writing, reading, begun sync.WaitGroup
		ended := make(chan struct{})
		begun.Add(len(reads))
		for _, read := range reads {
			reading.Go(func() {
				read()
				begun.Done()
				until(ended, read)
			})
		}
		begun.Wait()
		for _, write := range writes {
			writing.Go(write)
		}
		writing.Wait()
		close(ended)
		reading.Wait()
		for n := range busyShards {
			w.wantEntries(n, busyEntries-keptBehind, busyEntries)
		}
	},
}

// until calls a function again and again until that is enough, and once more.
func until(enough <-chan struct{}, do func()) {
	for {
		select {
		case <-enough:
			do()
			return
		default:
			do()
		}
	}
}

// busy is a shard that is written and read at once.
type busy struct {
	w         *world
	shard     int
	last      atomic.Uint64 // entry that was answered
	first     atomic.Uint64 // entry before which some may go
	snapshots counted
}

// write appends entries, and snapshots that let the older ones go.
func (b *busy) write() {
	for n := uint64(1); n <= busyEntries; n++ {
		if err := b.w.Append(entry(b.shard, n)); err != nil {
			b.w.Errorf("append entry %d of shard %d: %v", n, b.shard, err)
			return
		}
		b.last.Store(n)
		if n%keptBehind == 0 && n > keptBehind {
			b.first.Store(n - keptBehind)
			b.snapshots.write(n, n-keptBehind)
		}
	}
}

// read reads what no snapshot lets go. It may begin later where one does so meanwhile.
func (b *busy) read() {
	first, last := max(b.first.Load(), 1), b.last.Load()
	next := first
	for e, err := range b.w.Read(b.shard, first) {
		if err != nil {
			b.w.Errorf("read entry %d of shard %d: %v", next, b.shard, err)
			return
		}
		if next == first && e.Number > first && e.Number <= b.first.Load() {
			next = e.Number
		}
		want := entry(b.shard, next)
		if e.Number != want.Number || e.Revision != want.Revision || string(e.Data) != string(want.Data) {
			b.w.Errorf("read %+v, want %+v", e, want)
			return
		}
		next++
	}
	if now := max(b.first.Load(), 1); now == first && next <= last {
		b.w.Errorf("shard %d, read from entry %d on, ends before entry %d of %d that were answered",
			b.shard, first, next, last)
	}
}

// counted is a Key under which snapshots are written that count up, and read at once.
type counted struct {
	w    *world
	of   journal.Key
	last atomic.Uint64
}

func (c *counted) write(n, first uint64) {
	part := fmt.Append(nil, n)
	if err := c.w.WriteSnapshot(c.of, journal.Snapshot{First: first, Parts: [][]byte{part, part}}); err != nil {
		c.w.Errorf("write snapshot %+v: %v", c.of, err)
		return
	}
	c.last.Store(n)
}

func (c *counted) read() {
	last := c.last.Load()
	s, err := c.w.ReadSnapshot(c.of)
	if err != nil {
		c.w.Errorf("read snapshot %+v: %v", c.of, err)
		return
	}
	if last == 0 && len(s.Parts) == 0 {
		return
	}
	whole := len(s.Parts) == 2 && string(s.Parts[0]) == string(s.Parts[1])
	if !whole {
		c.w.Errorf("snapshot %+v is not one that was written: %q", c.of, s.Parts)
		return
	}
	n, err := strconv.ParseUint(string(s.Parts[0]), 10, 64)
	if err != nil || n < last || c.of.Shard != journal.Notes && s.First != n-keptBehind {
		c.w.Errorf("snapshot %+v is %q, of entries from %d on, and %d was answered", c.of, s.Parts, s.First, last)
	}
}
