package check_test

import (
	"testing"
	"time"

	"taskledger/integration/robustness/check"
	"taskledger/integration/robustness/history"
)

// A task that is ready wants a slot as long as there is none, not while it runs or one is free beside it.
func TestSlots_WantingIsTheTimeWithoutAFreeOne(t *testing.T) {
	b := newBuilder(t)
	b.settled(1)
	b.submit("b")
	b.start("b", "n-1")
	b.submit("c")
	b.start("c", "n-2")
	b.submit("a")
	from := b.clock
	b.pass(3 * time.Second)
	b.succeed("b")
	b.pass(2 * time.Second)
	b.start("a", "n-1")
	until := b.clock
	b.succeed("a")
	b.succeed("c")
	r := b.finish()
	wallEnds(r)
	slots := check.SlotsOf(r)
	for task, want := range map[string]time.Duration{"a": 3 * time.Second, "b": 0, "never": 0} {
		if got := slots.Wanting(task, from, until); got < want || got > want+10*time.Millisecond {
			t.Errorf("%s: %s, want %s", task, got, want)
		}
	}
}

// A free slot of a node that a fault disturbs is nothing that a task can be waited for.
func TestSlots_WantingCountsNoSlotOfADisturbedNode(t *testing.T) {
	b := newBuilder(t)
	b.settled(1)
	for _, id := range []string{"b", "c"} {
		b.submit(id)
		b.start(id, map[string]string{"b": "n-1", "c": "n-2"}[id])
	}
	b.submit("a")
	from := b.clock
	b.pass(time.Second)
	b.succeed("b")
	free := b.clock
	b.pass(5 * time.Second)
	b.start("a", "n-1")
	until := b.clock
	b.succeed("a")
	b.succeed("c")
	r := b.finish()
	wallEnds(r)
	for name, test := range map[string]struct {
		kind, target string
		want         time.Duration
	}{
		"no fault":             {"freeze", "node-1 n-3", time.Second},
		"the free node":        {"freeze", "node-1 n-1", 3 * time.Second},
		"a node with no slot":  {"freeze", "node-2 n-2", time.Second},
		"all":                  {"no space", "all", 3 * time.Second},
		"all, of the bus":      {"bus away", "all", time.Second},
		"what all get used to": {history.BusAwayFromOneKind, "node-1 n-1", time.Second},
	} {
		r.Faults = []history.Fault{{Kind: test.kind, Target: test.target, From: free + int64(time.Second), Until: free + 3*int64(time.Second)}}
		if got := check.SlotsOf(r).Wanting("a", from, until); got < test.want || got > test.want+10*time.Millisecond {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Among other faults a task is waited for from the last end of those that it depended on.
func TestSlots_WaitedCountsFromTheLastEndOfAnOwner(t *testing.T) {
	at := func(ms int64) int64 { return ms * int64(time.Millisecond) }
	for name, test := range map[string]struct {
		keys []history.KeyChange
		want time.Duration
	}{
		"nobody else ends":    {[]history.KeyChange{{At: 1, Owner: "o"}}, 10 * time.Second},
		"its owner ends":      {[]history.KeyChange{{At: 1, Owner: "o"}, {At: at(9_000), Node: "o", Deleted: true}}, 6 * time.Second},
		"another node ends":   {[]history.KeyChange{{At: 1, Owner: "o"}, {At: at(9_000), Node: "n", Deleted: true}}, 10 * time.Second},
		"a former one ends":   {[]history.KeyChange{{At: 1, Owner: "o"}, {At: 2, Owner: "p"}, {At: at(9_000), Node: "o", Deleted: true}}, 10 * time.Second},
		"its owner ends soon": {[]history.KeyChange{{At: 1, Owner: "o"}, {At: at(3_000), Node: "o", Deleted: true}}, 10 * time.Second},
		"it ends afterwards":  {[]history.KeyChange{{At: 1, Owner: "o"}, {At: at(12_500), Node: "o", Deleted: true}}, 10 * time.Second},
	} {
		test.keys = append(test.keys, history.KeyChange{At: 1, Node: "other", Slots: 1})
		h := &history.Run{Info: history.Info{TTLMs: 3000, Shards: 1, End: at(20_000)}, Keys: test.keys, Members: []history.Journals{{Entries: make([][]history.Record, 1)}}}
		if got := check.SlotsOf(h).Waited("a", at(2_000), at(12_000)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// Among other faults a task is not waited for while they disturb every node.
func TestSlots_WaitedLeavesOutWhenEveryNodeIsDisturbed(t *testing.T) {
	at := func(seconds int64) int64 { return seconds * int64(time.Second) }
	both := []history.KeyChange{{At: 1, Node: "n", Slots: 1}, {At: 1, Node: "o", Slots: 1}}
	for name, test := range map[string]struct {
		keys   []history.KeyChange
		faults []history.Fault
		want   time.Duration
	}{
		"none is":           {both, nil, 10 * time.Second},
		"one is":            {both, []history.Fault{{Kind: "freeze", Target: "node-0 n", From: at(3), Until: at(9)}}, 10 * time.Second},
		"each is, in turn":  {both, []history.Fault{{Kind: "freeze", Target: "node-0 n", From: at(3), Until: at(5)}, {Kind: "freeze", Target: "node-1 o", From: at(5), Until: at(9)}}, 10 * time.Second},
		"both are, at once": {both, []history.Fault{{Kind: "freeze", Target: "node-0 n", From: at(3), Until: at(7)}, {Kind: "kill", Target: "node-1 o", From: at(5), Until: at(9)}}, 8 * time.Second},
		"one is, one left":  {append(both, history.KeyChange{At: at(6), Node: "o", Deleted: true}), []history.Fault{{Kind: "freeze", Target: "node-0 n", From: at(3), Until: at(7)}}, 9 * time.Second},
	} {
		h := &history.Run{Info: history.Info{TTLMs: 3000, Shards: 1, End: at(20)}, Keys: test.keys, Faults: test.faults, Members: []history.Journals{{Entries: make([][]history.Record, 1)}}}
		if got := check.SlotsOf(h).Waited("a", at(2), at(12)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
