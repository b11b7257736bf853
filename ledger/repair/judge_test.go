package repair

import (
	"testing"

	"taskledger/events"
	"taskledger/store"
)

// The last hash of a journal that was trimmed whole is not known: what comes next belongs there.
func TestRepair_EntryAfterATrimmedJournalBelongsThere(t *testing.T) {
	var b events.Builder
	b.Reset(events.Entry{Shard: 1, Number: 8, Epoch: 5, Owner: "owner", Time: 1, Prev: events.Hash{1}})
	b.AddOrigin(events.Origin{Sender: "s", Lane: 1, Number: 7, Answers: []byte{1}})
	data, err := b.Seal()
	if err != nil {
		t.Fatal(err)
	}
	for blank, strays := range map[bool]int{true: 0, false: 1} {
		j := judge{shard: 1, sound: sound{last: 7, blank: blank}}
		j.consider(store.StoredKey{Key: "journal/1/8", Entry: 8, Data: data})
		if found := j.verdict(); len(found) != strays {
			t.Errorf("last hash unknown %t: found %+v", blank, found)
		}
	}
}

// What was written over may have been an entry, and is kept; a key that no entry can have is none.
func TestRepair_KeepsWhatMayHaveTakenThePlaceOfAnEntry(t *testing.T) {
	for _, c := range []struct {
		key  store.StoredKey
		keep string
	}{
		{store.StoredKey{Key: "journal/1/1", Entry: 1, Data: []byte("x"), Replaced: true}, KeepReplaced},
		{store.StoredKey{Key: "journal/1/1", Entry: 1, Data: []byte("x")}, ""},
		{store.StoredKey{Key: "journal/1/x", Data: []byte("x"), Replaced: true}, ""},
	} {
		j := judge{shard: 1}
		j.consider(c.key)
		if found := j.verdict(); len(found) != 1 || found[0].Keep != c.keep {
			t.Errorf("%+v: found %+v, want it kept because %q", c.key, found, c.keep)
		}
	}
}
