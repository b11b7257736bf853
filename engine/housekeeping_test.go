package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/store"
)

// housekept is a store that notes what is done to keep it small.
type housekept struct {
	store.Store
	compacted    []int64
	defragmented int
}

func (s *housekept) Compact(_ context.Context, revision int64) error {
	s.compacted = append(s.compacted, revision)
	return nil
}

func (s *housekept) Defragment(context.Context) error {
	s.defragmented++
	return nil
}

// keepFor looks at a store once a second; its revision is the second.
func keepFor(t *testing.T, k *engine.Housekeeper, from, to int, u store.Usage, first bool) {
	t.Helper()
	for second := from; second < to; second++ {
		u.Revision = int64(second)
		if err := k.Keep(t.Context(), u, time.Unix(int64(second), 0), first); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKeeping_CompactsEveryFiveMinutesUpToFiveSecondsAgo(t *testing.T) {
	s := &housekept{}
	k := engine.NewHousekeeper(s, time.Unix(1000, 0))
	calm := store.Usage{InUse: 50 << 20, Size: 60 << 20, Quota: 1 << 30}
	keepFor(t, k, 1000, 1300, calm, true)
	if len(s.compacted) != 0 {
		t.Fatalf("compacted to %v within five minutes, without growth", s.compacted)
	}
	keepFor(t, k, 1300, 1601, calm, true)
	if len(s.compacted) != 2 || s.compacted[0] != 1295 || s.compacted[1] != 1595 {
		t.Errorf("compacted to %v, want 1295 and 1595", s.compacted)
	}
	keepFor(t, k, 1601, 2300, calm, false)
	if len(s.compacted) != 2 || s.defragmented != 0 {
		t.Errorf("compacted %d times, defragmented %d times by who is not to", len(s.compacted), s.defragmented)
	}
}

// What is replaced may fill the store before it has grown by as much as is compacted otherwise.
func TestKeeping_CompactsEveryHalfMinuteWhileNewTasksAreRefused(t *testing.T) {
	s := &housekept{}
	k := engine.NewHousekeeper(s, time.Unix(1000, 0))
	filled := store.Usage{InUse: 26 << 20, Size: 28 << 20, Quota: 32 << 20}
	keepFor(t, k, 1000, 1091, filled, true)
	if want := []int64{1025, 1055, 1085}; !slices.Equal(s.compacted, want) {
		t.Errorf("compacted to %v, want %v", s.compacted, want)
	}
}

func TestKeeping_DefragmentsAFileThatIsMostlyEmptyEveryTenMinutes(t *testing.T) {
	s := &housekept{}
	k := engine.NewHousekeeper(s, time.Unix(1000, 0))
	keepFor(t, k, 1000, 2201, store.Usage{InUse: 10 << 20, Size: 60 << 20, Quota: 100 << 20}, false)
	if s.defragmented != 3 {
		t.Errorf("defragmented %d times in twenty minutes, want at once and every ten minutes", s.defragmented)
	}
	for _, u := range []store.Usage{{InUse: 16 << 20, Size: 60 << 20, Quota: 100 << 20}, {InUse: 1 << 20, Size: 40 << 20, Quota: 100 << 20}} {
		s.defragmented = 0
		keepFor(t, engine.NewHousekeeper(s, time.Time{}), 5000, 5010, u, false)
		if s.defragmented != 0 {
			t.Errorf("%+v: defragmented", u)
		}
	}
}

func TestKeeping_FullStoreIsCompactedByEverybodyThenDefragmentedEveryHalfMinute(t *testing.T) {
	s := &housekept{}
	k := engine.NewHousekeeper(s, time.Time{})
	full := store.Usage{InUse: 90 << 20, Size: 100 << 20, Quota: 100 << 20, Full: true}
	keepFor(t, k, 1000, 1006, full, false)
	if len(s.compacted) != 1 || s.compacted[0] != 1000 || s.defragmented != 0 {
		t.Fatalf("after five seconds: compacted to %v, defragmented %d times", s.compacted, s.defragmented)
	}
	keepFor(t, k, 1006, 1067, full, false)
	if s.defragmented != 3 {
		t.Errorf("defragmented %d times within a minute after it", s.defragmented)
	}
	full.Full = false
	keepFor(t, k, 1067, 1200, full, false)
	if s.defragmented != 3 {
		t.Errorf("defragmented %d times when it was full no more", s.defragmented-3)
	}
}
