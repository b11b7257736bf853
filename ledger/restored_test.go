package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/store"
)

// elsewhere returns the records with another history from the one at index on, as a store has it that was restored to
// before it.
func elsewhere(t *testing.T, all []store.Record, index int) []store.Record {
	t.Helper()
	all = slices.Clone(all)
	prev := events.Hash{}
	if index > 0 {
		prev = testcluster.Decoded(t, all[index-1].Data).Hash
	}
	for i := index; i < len(all); i++ {
		all[i].Data = testcluster.Forged(t, all[i].Data, prev, []string{"", "1000000"}[i%2])
		prev = testcluster.Decoded(t, all[i].Data).Hash
	}
	return all
}

// After a store was restored to a time in the past, its archive holds a future that was lost. What the journal holds
// counts.
func TestReader_TakesNothingFromTheArchiveThatTheJournalHolds(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(10)
	ofShard := func(all []ledger.Event) []ledger.Event { // replaced entries have other revisions, and so another order among all shards
		return slices.DeleteFunc(all, func(ev ledger.Event) bool { return ev.Position.Shard != 1 })
	}
	want := ofShard(replayed(t, p.node.Client, ledger.ReplayOptions{}))
	whole := p.Records(1)
	const kept, same = 3, 5 // the journal begins with the entry at kept, archive and journal are alike up to the one at same
	longer := append(elsewhere(t, whole, same), elsewhere(t, whole, 0)[len(whole)-1])
	longer[len(whole)].Number++ // a lost future has more entries, too
	setArchive(p.archive, 1, longer)
	p.Replace(1, whole[kept:])
	c := p.reader(p.archive)
	got := ofShard(replayed(t, c, ledger.ReplayOptions{}))
	if !slices.EqualFunc(got, want, func(a, b ledger.Event) bool { return a.Position == b.Position && a.Task == b.Task && a.At == b.At }) {
		t.Errorf("replayed %d events, want the %d of the journal", len(got), len(want))
	}
	if v := verified(t, c, ledger.VerifyOptions{})[1]; v.Damage != "" || v.Entries != uint64(len(whole)) || !v.Compared {
		t.Errorf("verified %+v, want the journal's %d entries", v, len(whole))
	}
	wantDamage(t, verified(t, c, ledger.VerifyOptions{Archive: true})[1], ledger.DamageArchive, same+1)
}

// Where the journal begins after another history than the archive holds, nothing of both together is true.
func TestReader_SaysThatTheArchiveContinuesOtherwise(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	p.spread(10)
	whole := p.Records(1)
	setArchive(p.archive, 1, elsewhere(t, whole, 1)[:3])
	p.Replace(1, whole[3:])
	c := p.reader(p.archive)
	var got error
	for _, err := range c.Ledger().Replay(testcluster.Within(t), ledger.ReplayOptions{}) {
		got = err
	}
	if !errors.Is(got, store.ErrConflict) || !errors.Is(got, events.ErrDamaged) || !strings.Contains(got.Error(), "the archive continues otherwise") {
		t.Errorf("replay ended with %v", got)
	}
	v := verified(t, c, ledger.VerifyOptions{})[1]
	if wantDamage(t, v, ledger.DamageArchive, 4); !strings.Contains(v.Problem, "the archive continues otherwise") {
		t.Errorf("verify says %q", v.Problem)
	}
}
