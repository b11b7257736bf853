package store_test

import (
	"testing"

	"taskledger/events"
	"taskledger/store"
)

func TestLacks_NamesWhatCannotBeRead(t *testing.T) {
	program := store.Reads{Kind: 60, Entry: 4, Snapshot: 5, Rules: 6}
	for _, c := range []struct {
		need store.Reads
		want string
	}{
		{store.Reads{}, ""},
		{program, ""},
		{store.Reads{Kind: 61}, "events of kind Kind(61)"},
		{store.Reads{Entry: 5}, "entries of version 5"},
		{store.Reads{Snapshot: 6}, "snapshots of version 6"},
		{store.Reads{Rules: 7}, "what is folded by rules 7"},
	} {
		if got := program.Lacks(c.need); got != c.want {
			t.Errorf("of %+v it lacks %q, want %q", c.need, got, c.want)
		}
	}
}

// A node key that says nothing of it is that of a program that reads the least.
func TestLacks_ZeroReadsWhatEveryProgramReads(t *testing.T) {
	var silent store.Reads
	for kind := events.KindCreated; kind <= events.KindDeleted; kind++ {
		if lacks := silent.Lacks(store.Reads{Kind: kind}); lacks != "" {
			t.Errorf("it lacks %s", lacks)
		}
	}
	if silent.Lacks(store.Reads{Kind: events.KindDeleted + 1}) == "" {
		t.Error("it reads more")
	}
}

func TestOutdated_NamesOneNodeAndWhatItCannotRead(t *testing.T) {
	m := store.Membership{Nodes: map[string]store.NodeInfo{
		"n-1": {Name: "new", Version: "2", Reads: store.Reads{Kind: 60, Entry: 2, Snapshot: 1}},
		"n-2": {Name: "old", Version: "1", Reads: store.Reads{Kind: 59, Entry: 2, Snapshot: 1}},
		"n-3": {Name: "older", Version: "0", Reads: store.Reads{Kind: 58, Entry: 2, Snapshot: 1}},
	}}
	if got, want := m.Outdated(store.Reads{Kind: 60}), "node old (1) cannot read events of kind Kind(60) yet: upgrade it first"; got != want {
		t.Errorf("it is said %q, want %q", got, want)
	}
	m.Written.Kind = 60 // an owner has said so, and has not looked yet who is there
	if got := m.Outdated(store.Reads{Kind: 60}); got == "" {
		t.Error("what a node cannot read that is present may be written")
	}
	if got := m.Outdated(store.Reads{Kind: 58}); got != "" {
		t.Errorf("it is said %q, want nothing", got)
	}
}
