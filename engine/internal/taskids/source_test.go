package taskids

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/events"
)

func TestSource_IdsFallIntoOnePreferredShardAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards = 16
		prefer := []int{3, 7, 12}
		s := New(shards)
		s.Prefer(prefer)
		drawn := map[int]int{}
		seen := map[events.TaskID]bool{}
		for range 300 {
			first := s.Draw(time.Now()).Shard(shards)
			for range 20 {
				id := s.Draw(time.Now())
				if err := id.Validate(); err != nil || len(id) != 26 || seen[id] {
					t.Fatalf("id %q: %v, seen %t", id, err, seen[id])
				}
				seen[id] = true
				if got := id.Shard(shards); got != first || !slices.Contains(prefer, got) {
					t.Fatalf("an id of shard %d among those of shard %d, preferred are %v", got, first, prefer)
				}
			}
			drawn[first]++
			time.Sleep(stickiness + time.Millisecond)
		}
		for _, shard := range prefer {
			if drawn[shard] != 100 {
				t.Errorf("shard %d had %d of 300 turns, want 100", shard, drawn[shard])
			}
		}
	})
}

func TestSource_WithoutShardsOfItsOwnTakesTurnsOverAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(8)
		drawn := map[int]int{}
		for range 80 {
			drawn[s.Draw(time.Now()).Shard(8)]++
			time.Sleep(stickiness + time.Millisecond)
		}
		for shard := range 8 {
			if drawn[shard] != 10 {
				t.Errorf("shard %d had %d of 80 turns, want 10", shard, drawn[shard])
			}
		}
	})
}

func TestSource_ChangeOfOwnershipIsFollowedAtOnce(t *testing.T) {
	s := New(16)
	for shard := range 16 {
		s.Prefer([]int{shard})
		for range 10 {
			if got := s.Draw(time.Now()).Shard(16); got != shard {
				t.Fatalf("an id of shard %d, only shard %d is served here", got, shard)
			}
		}
	}
}

// Beyond what one owner is enough for, ids fall into two shards by turns, and back into one when the crowd is gone.
func TestSource_ManySubmitsAtOnceShareTwoShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(8)
		shards := func() int {
			time.Sleep(stickiness + time.Millisecond)
			drawn := map[int]int{}
			for range 100 {
				drawn[s.Draw(time.Now()).Shard(8)]++
			}
			return len(drawn)
		}
		for _, row := range []struct {
			submitting int64
			want       int
		}{{0, 1}, {perShard - 1, 1}, {perShard, 2}, {2*perShard - 1, 2}, {0, 1}} {
			s.Submitting.Store(row.submitting)
			shards() // that is seen
			if got := shards(); got != row.want {
				t.Errorf("with %d submits at once ids fall into %d shards, want %d", row.submitting, got, row.want)
			}
		}
	})
}

// Many processes that draw one id each, as command lines do, do not all choose the same shard.
func TestSource_FirstIdsOfManyProcessesFallIntoAllShards(t *testing.T) {
	const shards = 8
	drawn := map[int]int{}
	for range 100 * shards {
		drawn[New(shards).Draw(time.Now()).Shard(shards)]++
	}
	if len(drawn) != shards {
		t.Errorf("first ids fall into %d of %d shards: %v", len(drawn), shards, drawn)
	}
}
