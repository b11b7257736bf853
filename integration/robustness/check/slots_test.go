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
		h := &history.Run{Info: history.Info{TTLMs: 3000, Shards: 1}, Keys: test.keys, Members: []history.Journals{{Entries: make([][]history.Record, 1)}}}
		if got := check.SlotsOf(h).Waited("a", at(2_000), at(12_000)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
