package local_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"taskledger/engine/local"
	"taskledger/filestore/journal"
	"taskledger/filestore/journaltest"
)

// notebook is a journal.Journaler. A real one would write to a database what this one keeps in memory.
type notebook struct {
	mu        sync.Mutex
	entries   map[int][]journal.Entry
	snapshots map[journal.Key]journal.Snapshot
}

func (n *notebook) Append(e journal.Entry) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	e.Data = slices.Clone(e.Data)
	n.entries[e.Shard] = append(n.entries[e.Shard], e)
	return nil
}

func (n *notebook) Read(shard int, from uint64) iter.Seq2[journal.Entry, error] {
	n.mu.Lock()
	all := slices.Clip(n.entries[shard])
	n.mu.Unlock()
	return func(yield func(journal.Entry, error) bool) {
		if len(all) == 0 || from < all[0].Number { // the entry is not needed any more
			return
		}
		for _, e := range all {
			e.Data = slices.Clone(e.Data)
			if e.Number >= from && !yield(e, nil) {
				return
			}
		}
	}
}

func (n *notebook) WriteSnapshot(k journal.Key, s journal.Snapshot) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	s.Parts = slices.Clone(s.Parts)
	for i, part := range s.Parts {
		s.Parts[i] = slices.Clone(part)
	}
	n.snapshots[k] = s
	needless := func(e journal.Entry) bool { return e.Number < s.First }
	n.entries[k.Shard] = slices.DeleteFunc(slices.Clone(n.entries[k.Shard]), needless)
	return nil
}

func (n *notebook) ReadSnapshot(k journal.Key) (journal.Snapshot, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.snapshots[k], nil
}

func (n *notebook) Close() error { return nil }

// A journaler of one's own, in fifty lines. Package journaltest holds it to the contract.
func Example_journaler() {
	ctx := context.Background()
	j := &notebook{entries: map[int][]journal.Entry{}, snapshots: map[journal.Key]journal.Snapshot{}}
	for range 2 { // the second node goes on where the first one ended
		n, err := local.StartWith(ctx, local.Config{Journal: j, Node: quiet()})
		if err != nil {
			panic(err)
		}
		fmt.Println(addOne(ctx, n), n.Close())
	}
	fmt.Println(j.Close())
	// Output:
	// 1 items in group map <nil>
	// 2 items in group map <nil>
	// <nil>
}

func TestExample_TheJournalerKeepsTheContract(t *testing.T) {
	journaltest.Run(t, journaltest.Subject{Open: func(*testing.T) journal.Journaler {
		return &notebook{entries: map[int][]journal.Entry{}, snapshots: map[journal.Key]journal.Snapshot{}}
	}})
}
