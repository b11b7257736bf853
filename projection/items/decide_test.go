package items_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/item"
	"taskledger/projection/items"
)

// text lists what the store "s" has, an item a line.
func (s *shard) text() string {
	var all strings.Builder
	s.state.Groups("s", "", func(g *items.Group) bool {
		s.state.Group("s", g.Name, 0, func(i *items.Item) bool {
			fmt.Fprintf(&all, "%d of %s, %d's, in %d ms: %s\n", i.ID, g.Name, i.Owner, i.At-s.now, i.Data[1:])
			return true
		})
		return true
	})
	return all.String()
}

func TestUpdate_LeavesWhatItAsksFor(t *testing.T) {
	s := newShard()
	for range 3 {
		s.added(t, "s", 1, 0, "g")
	}
	first := s.updated(t, "s", &item.Update{Client: 2, Depends: []int64{1}, Deletes: []int64{1},
		Changes: []item.Change{{ID: 3, Data: []byte("three"), At: -5}, {ID: 2, Keep: true, At: item.When(s.now - 7)}},
		Adds:    []item.Add{{Group: "h", Data: []byte("x")}, {Group: "g", At: 1}}})
	want := "5 of g, 2's, in " + fmt.Sprint(1-s.now) + " ms: \n6 of g, 2's, in 5 ms: three\n7 of g, 2's, in -7 ms: d\n4 of h, 2's, in 0 ms: x\n"
	if first != 4 || s.text() != want {
		t.Errorf("from %d on:\n%swant\n%s", first, s.text(), want)
	}
}

func TestUpdate_OfWhatIsAvailableIsEverybodysAndOfWhatIsHeldItsOwners(t *testing.T) {
	s := newShard()
	s.added(t, "s", 1, -1000, "g")
	try := func(client int64) int {
		return len(s.decided(t, "s", &item.Update{Client: client, Deletes: []int64{1}}).Problems) +
			len(s.decided(t, "s", &item.Update{Client: client, Changes: []item.Change{{ID: 1}}}).Problems)
	}
	for _, step := range []struct {
		later       time.Duration
		owner, rest int
	}{{0, 0, 2}, {999 * time.Millisecond, 0, 2}, {time.Millisecond, 0, 0}} {
		s.later(step.later)
		if owner, rest := try(1), try(2); owner != step.owner || rest != step.rest {
			t.Errorf("%d problems for the owner and %d for another, want %d and %d", owner, rest, step.owner, step.rest)
		}
	}
}

func TestUpdate_TimesOfNoOrOfNegativeAmountCountFromTheEntryAndPastOnesStay(t *testing.T) {
	s := newShard()
	for when, want := range map[item.When]events.Millis{0: s.now, -1: s.now + 1, 1: 1, item.When(s.now) - 5: s.now - 5, item.MaxTime: events.MaxItemTime} {
		id := s.added(t, "s", 1, when, "g")
		if got := s.state.Item("s", uint64(id)).At; got != want {
			t.Errorf("timespec %d is %d, want %d", when, got, want)
		}
	}
}

func TestClaim_IsUniformAmongThe64OldestByTimeAndThenID(t *testing.T) {
	const n = items.Head + 36
	s := newShard()
	age := func(i int) events.Millis { return events.Millis(i * 37 % n / 2) } // two of each age
	for i := range n {
		s.added(t, "s", 1, item.When(s.now-age(i)), "g")
	}
	var oldest []int
	for i := range n {
		oldest = append(oldest, i)
	}
	slices.SortStableFunc(oldest, func(a, b int) int { return int(age(b) - age(a)) })
	want := map[uint64]int{}
	for _, i := range oldest[:items.Head] {
		want[uint64(i+1)] = 3
	}
	got := map[uint64]int{}
	for random := range uint64(3 * items.Head) {
		c := &item.Claim{Client: 2, Group: "g", Duration: hour}
		d, err := s.state.DecideClaim("s", c, "", math.MaxUint64-random, s.now)
		if err != nil {
			t.Fatal(err)
		}
		got[d.Changed[0].ID]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("claims of each id are %v, want %v", got, want)
	}
}

func TestClaim_OfFewerThan64TakesEachOfThem(t *testing.T) {
	s := newShard()
	for range 3 {
		s.added(t, "s", 1, 0, "g")
	}
	got := map[int64]bool{}
	for random := range uint64(3) {
		d, err := s.state.DecideClaim("s", &item.Claim{Client: 2, Group: "g", Duration: hour}, "", random, s.now)
		if err != nil {
			t.Fatal(err)
		}
		got[int64(d.Changed[0].ID)] = true
	}
	if len(got) != 3 {
		t.Errorf("three random numbers choose %v", got)
	}
}

func TestClaim_GivesANewIDAnOwnerAndATimeAndKeepsTheData(t *testing.T) {
	s := newShard()
	s.added(t, "s", 1, 0, "g")
	s.later(time.Second)
	id := s.claimed(t, 2, "g", 9)
	if want := "2 of g, 2's, in 3600000 ms: d\n"; id != 2 || s.text() != want {
		t.Errorf("claimed %d: %swant %s", id, s.text(), want)
	}
	if s.claimed(t, 3, "g", 9) != 0 {
		t.Error("claimed twice")
	}
	s.later(hour - time.Millisecond)
	if s.claimed(t, 3, "g", 9) != 0 {
		t.Error("claimed before the first claim was over")
	}
	s.later(time.Millisecond)
	if s.claimed(t, 3, "g", 9) == 0 {
		t.Error("not available after the first claim was over")
	}
}

func TestCheck_OfWhatDoesNotExistMakesNoStore(t *testing.T) {
	s := newShard()
	s.decided(t, "s", &item.Update{Client: 1, Depends: []int64{1}})
	s.claimed(t, 1, "g", 3)
	if s.state.Store("s") != nil {
		t.Error("a store was made")
	}
}

func TestClaim_OfAnItemThatIsHeldGetsNothingNotEvenForItsOwner(t *testing.T) {
	s := newShard()
	s.added(t, "s", 1, -1000, "g")
	if id := s.claimed(t, 1, "g", 3); id != 0 {
		t.Errorf("its owner claimed %d", id)
	}
}
