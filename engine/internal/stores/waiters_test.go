package stores_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"taskledger/engine/internal/stores"
)

var group = stores.Group{Store: "s", Name: "g"}

// woken returns the senders that are notified when so many items are there.
func woken(w *stores.Waiters, now time.Duration, items int) (notified []string) {
	w.Wake(now, group, items, func(sender string) { notified = append(notified, sender) })
	return notified
}

func want(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q are notified, want %q", when, got, want)
	}
}

func TestWaiters_AreToldInTurnOneForEachItem(t *testing.T) {
	var w stores.Waiters
	w.Set(group, "a", 3, 0)
	w.Set(group, "b", 1, 0)
	want(t, "nothing is there", woken(&w, 0, 0))
	want(t, "three items", woken(&w, 1, 3), "a", "b", "a")
	want(t, "the same three", woken(&w, 2, 3))
	want(t, "one more", woken(&w, 3, 4), "a")
	if !w.None() {
		t.Error("a notified sender waits")
	}
}

func TestWaiters_ItemsThatNobodyHasClaimedAreToldAgain(t *testing.T) {
	var w stores.Waiters
	w.Set(group, "a", 2, 0)
	want(t, "one item", woken(&w, 0, 1), "a")
	want(t, "soon after", woken(&w, 100*time.Millisecond, 1))
	want(t, "later", woken(&w, 101*time.Millisecond, 1), "a")
}

func TestWaiters_NextItemIsToldOfOnceTheOneBeforeIsClaimed(t *testing.T) {
	var w stores.Waiters
	w.Set(group, "a", 2, 0)
	want(t, "one item", woken(&w, 0, 1), "a")
	w.Claimed(group)
	w.Claimed(stores.Group{Store: "s", Name: "other"})
	want(t, "another", woken(&w, 0, 1), "a")
	w.Claimed(group)
	want(t, "when all were notified", woken(&w, 0, 1))
}

func TestWaiters_ThatDoNotRegisterAgainAreForgotten(t *testing.T) {
	var w stores.Waiters
	w.Set(group, "gone", 1, 0)
	w.Set(group, "here", 1, 0)
	w.Set(group, "here", 1, 4*time.Second)
	want(t, "later", woken(&w, 6*time.Second, 2), "here")
	w.Set(group, "a", 1, 6*time.Second)
	w.Set(group, "a", 0, 6*time.Second)
	want(t, "after it left", woken(&w, 7*time.Second, 9))
	if !w.None() {
		t.Error("somebody waits")
	}
}

func TestWaiters_AreBounded(t *testing.T) {
	var w stores.Waiters
	of := func(i int) stores.Group { return stores.Group{Store: "s", Name: fmt.Sprint(i)} }
	for i := range 10_001 {
		w.Set(of(i), "a", 1, 0)
	}
	notified := 0
	for i := range 10_001 {
		w.Wake(0, of(i), 1, func(string) { notified++ })
	}
	if notified != 10_000 {
		t.Errorf("%d are notified, want 10,000", notified)
	}
}

// Nothing comes for any of the groups: who has waited in vain leaves nothing behind, and who has gone without a word
// makes room.
func TestWaiters_LeaveNothingBehindWhereNothingComes(t *testing.T) {
	var w stores.Waiters
	for i := range 20_000 {
		g := stores.Group{Store: "s", Name: fmt.Sprint(i)}
		w.Set(g, "a", 1, 0)
		w.Set(g, "a", 0, 0)
	}
	if n := w.Crowds(); n != 0 {
		t.Errorf("%d crowds are left", n)
	}
	for i := range 10_000 {
		w.Set(stores.Group{Store: "s", Name: fmt.Sprint(i)}, "gone", 1, 0)
	}
	w.Set(group, "a", 1, 6*time.Second)
	if n := w.Crowds(); n != 1 {
		t.Errorf("%d crowds are left, want the one of the waiter", n)
	}
}
