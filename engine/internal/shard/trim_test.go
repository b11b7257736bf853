package shard_test

import (
	"testing"
	"time"

	"taskledger/engine/internal/shard"
	"taskledger/store/memarchive"
)

func TestTrim_IsBehindOnceTheArchiveLacksForAMinuteWhatItIsToHold(t *testing.T) {
	began := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	var l shard.Lag
	for _, c := range []struct {
		after       time.Duration
		until, done uint64
		want        uint64
	}{
		{0, 1, 0, 0},
		{time.Second, 101, 0, 0},
		{59 * time.Second, 201, 0, 0},
		{61 * time.Second, 301, 50, 250}, // those before 101 are late
		{2 * time.Minute, 301, 100, 0},   // they are there, and the others have a minute of their own
		{150 * time.Second, 301, 100, 0},
		{181 * time.Second, 301, 100, 200},
		{200 * time.Second, 301, 300, 0},
		{10 * time.Minute, 401, 300, 0}, // the load goes on
		{11 * time.Minute, 501, 400, 0},
		{12 * time.Minute, 601, 500, 0},
	} {
		if got := l.Behind(c.until, c.done, began.Add(c.after)); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

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
