package storetest

import (
	"context"
	"errors"
	"iter"
	"slices"

	"taskledger/store"
)

// repairs hold of what the methods of a store write.
var repairs = map[string]func(*world){
	"Behind/OfASoundJournalIsEmpty": func(w *world) {
		w.wantBehind(0)
		head := w.append(w.A, w.own(w.A), store.Head{}, "one")
		w.wantBehind(1)
		w.wantBehind(7)
		w.wantBehind(0, store.StoredKey{Key: w.behind(0)[0].Key, Entry: 1, Revision: head.Revision, Data: []byte("one")})
	},
	"Behind/YieldsManyPages": func(w *world) {
		heads := w.fill(w.own(w.A), store.Head{}, 100)
		for _, from := range []uint64{0, 1, 50, 99} {
			got := w.behind(from)
			if len(got) != int(100-from) {
				w.Fatalf("behind entry %d are %d keys, want %d", from, len(got), 100-from)
			}
			for i, k := range got {
				if head := heads[int(from)+i]; k.Entry != head.Number || k.Revision != head.Revision || k.Replaced {
					w.Fatalf("key %+v where that of entry %+v is due", k, head)
				}
			}
		}
	},
	"Leaseless/IsNoNodeWithASession": func(w *world) {
		session := w.join(w.A)
		w.wantStored(w.B.Leaseless(w.ctx))
		w.leave(w.A, session)
		w.wantStored(w.B.Leaseless(w.ctx))
	},
}

// strayed are the rules of keys that no method of a store writes.
var strayed = map[string]func(*world){
	"Behind/YieldsWhatFollowsInTheOrderOfTheKeys": func(w *world) {
		w.fill(w.own(w.A), store.Head{}, 2)
		none := store.StoredKey{Key: w.Strays.NoEntry(0, "none"), Data: []byte("none")}
		late := store.StoredKey{Key: w.Strays.Entry(0, 0x100, "late"), Entry: 0x100, Data: []byte("late")}
		w.Strays.Entry(0, 4, "four")
		four := store.StoredKey{Key: w.Strays.Entry(0, 4, "again"), Entry: 4, Replaced: true, Data: []byte("again")}
		w.Strays.Entry(1, 3, "of another shard")
		w.wantBehind(2, four, late, none)
		w.wantBehind(4, late, none)
		w.wantBehind(0xff, late, none)
		w.wantBehind(0x100, none)
	},
	"Foreign/OfASoundClusterIsEmpty": func(w *world) {
		o := w.own(w.A)
		w.append(w.A, o, store.Head{}, "one")
		w.snapshot(w.A, o, 1, "state")
		w.post(w.A.Cluster().Shards-1, "s1", 0, "batch")
		w.post(w.A.Cluster().Shards, "s1", 0, "question to nodes")
		w.exchange(0, "s2", 0, "answer")
		w.Strays.Node("n1", "node")
		w.wantStored(w.B.Foreign(w.ctx))
	},
	"Foreign/IsEveryKindOfKeyOfAShardThatDoesNotExist": func(w *world) {
		w.fill(w.own(w.A), store.Head{}, 2)
		var want, removed []string
		for _, shard := range []int{w.A.Cluster().Shards + 1, store.MaxShards + 1} {
			want = append(want, w.Strays.OfShard(shard)...)
		}
		for range len(want) {
			for k, err := range w.B.Foreign(w.ctx) {
				if err != nil || k.Revision <= 0 || len(k.Data) != 0 {
					w.Fatalf("got %+v, %v, want a key without data", k, err)
				}
				w.remove(k)
				removed = append(removed, k.Key)
			}
		}
		w.wantStored(w.B.Foreign(w.ctx))
		slices.Sort(want)
		if slices.Sort(removed); !slices.Equal(removed, want) {
			w.Errorf("foreign were %q, want %q", removed, want)
		}
		w.wantJournal(1, "entry 1", "entry 2")
	},
	"Foreign/IsOneKeyOfAJournal": func(w *world) {
		shard := w.A.Cluster().Shards + 1
		for number := range uint64(3) {
			w.Strays.Entry(shard, number+1, "entry")
		}
		if found := collect(w, w.B.Foreign(w.ctx)); len(found) != 1 {
			w.Errorf("foreign are %+v, want one key of three of a journal", found)
		}
	},
	"Leaseless/IsANodeKeyThatWasPutByHand": func(w *world) {
		kept, lost := w.join(w.A), w.join(w.A)
		want := []store.StoredKey{
			{Key: w.Strays.Node(lost.ID, "over a session"), Data: []byte("over a session")},
			{Key: w.Strays.Node("phantom", "of nobody"), Data: []byte("of nobody")},
		}
		if want[1].Key < want[0].Key {
			slices.Reverse(want)
		}
		w.wantStored(w.B.Leaseless(w.ctx), want...)
		for _, k := range collect(w, w.B.Leaseless(w.ctx)) {
			w.remove(k)
		}
		w.wantStored(w.B.Leaseless(w.ctx))
		if nodes := w.members().Nodes; len(nodes) != 1 || nodes[kept.ID].ID != kept.ID {
			w.Errorf("nodes are %+v, want %s alone", nodes, kept.ID)
		}
	},
	"Remove/RemovesOneKey": func(w *world) {
		w.fill(w.own(w.A), store.Head{}, 2)
		w.Strays.Entry(0, 4, "four")
		w.Strays.Entry(0, 5, "five")
		found := w.behind(0)
		w.remove(found[2])
		w.wantBehind(0, found[0], found[1], found[3])
		w.remove(found[3])
		w.wantJournal(1, "entry 1", "entry 2")
	},
	"Remove/WhatIsGoneIsNoError": func(w *world) {
		w.Strays.Entry(0, 4, "four")
		found := w.behind(0)[0]
		w.remove(found)
		w.remove(found)
		w.wantBehind(0)
	},
	"Remove/NothingThatWasWrittenSince": func(w *world) {
		w.Strays.Entry(0, 4, "old")
		found := w.behind(0)[0]
		w.Strays.Entry(0, 4, "new")
		w.wantNotRemoved(found, nil)
		replaced := w.behind(0)[0]
		w.remove(replaced)
		w.Strays.Entry(0, 4, "there again")
		for _, k := range []store.StoredKey{found, replaced} {
			w.wantNotRemoved(k, nil)
		}
	},
	"Remove/NoKeyOfTheClusterIsRefused": func(w *world) {
		w.Strays.Entry(0, 4, "four")
		found := w.behind(0)[0]
		for _, k := range []store.StoredKey{{Revision: found.Revision}, {Key: "another" + found.Key, Revision: found.Revision},
			{Key: found.Key}, {Key: found.Key, Revision: -1}} {
			w.wantNotRemoved(k, store.ErrRefused)
		}
	},
	"Repairer/EndOfContextIsAnError": func(w *world) {
		w.Strays.Entry(0, 4, "four")
		found := w.behind(0)[0]
		ctx, cancel := context.WithCancel(w.ctx)
		cancel()
		failsWith(w, w.A.Behind(ctx, 0, 0), context.Canceled)
		failsWith(w, w.A.Foreign(ctx), context.Canceled)
		failsWith(w, w.A.Leaseless(ctx), context.Canceled)
		if err := w.A.Remove(ctx, found); !errors.Is(err, context.Canceled) {
			w.Errorf("remove: %v, want %v", err, context.Canceled)
		}
	},
}

// collect returns all that a sequence yields, and ends the test when it fails.
func collect(w *world, seq iter.Seq2[store.StoredKey, error]) (all []store.StoredKey) {
	w.Helper()
	for k, err := range seq {
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, k)
	}
	return all
}

// behind returns what is stored behind an entry of shard 0.
func (w *world) behind(entry uint64) []store.StoredKey {
	w.Helper()
	return collect(w, w.B.Behind(w.ctx, 0, entry))
}

func (w *world) wantBehind(entry uint64, want ...store.StoredKey) {
	w.Helper()
	w.wantStored(w.B.Behind(w.ctx, 0, entry), want...)
}

// wantStored compares what a sequence yields. A wanted key without a revision may have any.
func (w *world) wantStored(seq iter.Seq2[store.StoredKey, error], want ...store.StoredKey) {
	w.Helper()
	got := collect(w, seq)
	if !slices.EqualFunc(got, want, func(got, want store.StoredKey) bool {
		return got.Key == want.Key && got.Entry == want.Entry && got.Replaced == want.Replaced && string(got.Data) == string(want.Data) &&
			got.Revision > 0 && (want.Revision == 0 || got.Revision == want.Revision)
	}) {
		w.Fatalf("stored are %+v, want %+v", got, want)
	}
}

func (w *world) remove(k store.StoredKey) {
	w.Helper()
	if err := w.A.Remove(w.ctx, k); err != nil {
		w.Fatalf("remove %+v: %v", k, err)
	}
}

// wantNotRemoved asserts that Remove fails, with want unless it is nil, and leaves what is in the journal of shard 0.
func (w *world) wantNotRemoved(k store.StoredKey, want error) {
	w.Helper()
	before := w.behind(0)
	if err := w.A.Remove(w.ctx, k); err == nil || want != nil && !errors.Is(err, want) {
		w.Errorf("remove %+v: %v, want an error that wraps %v", k, err, want)
	}
	w.wantBehind(0, before...)
}
