package shard_test

import (
	"testing"

	"taskledger/store/memarchive"
)

// While trims lag, as they do where what is archived has to settle, what is archived counts, trimmed or not; what is
// trimmed was archived, by whichever owner.
func TestTrim_CountsAsUnarchivedWhatIsNeitherArchivedNorTrimmed(t *testing.T) {
	b := newFixture(t)
	b.cfg.Loader.Archive, b.cfg.Loader.Archives = memarchive.New(), true
	for _, c := range []struct{ first, archived, head, want uint64 }{
		{0, 0, 100, 0}, // nothing is known yet
		{1, 0, 100, 100},
		{1, 70, 100, 30},
		{41, 70, 100, 30},
		{71, 0, 100, 30},
		{1, 120, 100, 0}, // the owner has heard of the archive first
	} {
		b.own.SetTrims(c.first, c.archived, c.head)
		if got := b.own.Vitals().Unarchived; got != c.want {
			t.Errorf("%+v: %d are not archived", c, got)
		}
	}
}
