package taskstoretest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
	"taskledger/taskstore"
)

// claims are the tests of claims and of whoever waits.
var claims = map[string]func(f *fixture){
	"Claim/GivesAnItemANewIdAnOwnerAndATimeAndKeepsItsData": func(f *fixture) {
		was := f.add("g", "data")[0]
		before := time.Now()
		it := f.mustClaim(f.other, "g", time.Hour)
		if it.ID != was.ID+1 || it.Owner != 2 || it.Group != "g" || string(it.Data) != "data" {
			f.Errorf("claimed %+v", it)
		}
		if left := it.At.Time().Sub(before); left < time.Hour-f.subject.Slack || left > time.Hour+f.subject.Slack {
			f.Errorf("claimed for %s, want an hour", left)
		}
		if old, err := f.s.Task(f.Context(), was.ID); old != nil || err != nil {
			f.Errorf("the old id has %v, %v", old, err)
		}
	},

	"Claim/NothingThereIsNoItemAndNoError": func(f *fixture) {
		if it := f.claim(f.s, "none", time.Hour); it != nil {
			f.Errorf("claimed %+v", it)
		}
		f.add("g", "data")
		f.mustClaim(f.s, "g", time.Hour)
		for _, s := range []*taskstore.Store{f.s, f.other} {
			if it := f.claim(s, "g", time.Hour); it != nil {
				f.Errorf("claimed what is held: %+v", it)
			}
		}
	},

	"Claim/WhatIsDueLaterIsNotClaimedBefore": func(f *fixture) {
		f.update(f.s, item.Update{Adds: []item.Add{{Group: "g", At: after(time.Hour)}, {Group: "g", Data: []byte("due")}}})
		if it := f.mustClaim(f.s, "g", time.Hour); string(it.Data) != "due" {
			f.Errorf("claimed %+v", it)
		}
		if it := f.claim(f.s, "g", time.Hour); it != nil {
			f.Errorf("claimed %+v", it)
		}
	},

	"Claim/WhatIsLongDueIsClaimed": func(f *fixture) {
		f.update(f.s, item.Update{Adds: []item.Add{{Group: "g", At: 1}}})
		f.mustClaim(f.s, "g", time.Hour)
	},

	"Claim/DependsAreCheckedBeforeTheGroupIsLookedAt": func(f *fixture) {
		f.add("g", "a")
		f.unchanged(func() {
			for _, group := range []string{"empty", "g"} {
				_, err := f.s.TryClaim(f.Context(), item.Claim{Group: group, Depends: []int64{9, 1, 8}})
				f.refused(err, "depends 9", "depends 8")
			}
		})
		if it, err := f.s.TryClaim(f.Context(), item.Claim{Group: "empty", Depends: []int64{1}}); it != nil || err != nil {
			f.Errorf("got %v, %v", it, err)
		}
	},

	"Claim/WhoeverIsLateIsToldThatTheIdIsGone": func(f *fixture) {
		f.add("g", "a")
		late := f.mustClaim(f.s, "g", 50*time.Millisecond)
		ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
		defer cancel()
		is, err := f.other.Claim(ctx, item.Claim{Group: "g", Duration: time.Hour, Wait: 5 * time.Second})
		if err != nil || is == nil {
			f.Fatalf("claimed %v, %v", is, err)
		}
		f.unchanged(func() {
			_, err := f.s.Update(f.Context(), item.Update{Deletes: []int64{late.ID}, Adds: []item.Add{{Group: "done"}}})
			f.refused(err, "deletes 2")
			_, err = f.s.Update(f.Context(), item.Update{Changes: []item.Change{{ID: late.ID, Keep: true, At: after(time.Hour)}}})
			f.refused(err, "updates 2")
			_, err = f.s.Update(f.Context(), item.Update{Deletes: []int64{is.ID}})
			f.refused(err, "deletes 3")
		})
		f.update(f.other, item.Update{Deletes: []int64{is.ID}})
	},

	"Claim/AFormerOwnerMayChangeWhatNobodyHasClaimedSince": func(f *fixture) {
		f.add("g", "a")
		it := f.mustClaim(f.s, "g", 20*time.Millisecond)
		f.due(it)
		if got, err := f.other.Task(f.Context(), it.ID); err != nil || got == nil || got.Owner != 1 {
			f.Errorf("after its time the item is %+v, %v, want it with owner 1", got, err)
		}
		f.update(f.s, item.Update{Changes: []item.Change{{ID: it.ID, Keep: true, At: after(time.Hour)}}})
	},

	"Claim/BadInputIsRefusedByField": func(f *fixture) {
		for field, c := range map[string]item.Claim{
			"group":      {},
			"duration":   {Group: "g", Duration: -time.Second},
			"wait":       {Group: "g", Wait: -1},
			"depends[1]": {Group: "g", Depends: []int64{1, 0}},
		} {
			_, err := f.s.Claim(f.Context(), c)
			if bad, is := errors.AsType[*store.InvalidError](err); !is || bad.Field != field {
				f.Errorf("%s: got %v", field, err)
			}
		}
		for _, d := range []time.Duration{1, 24*time.Hour + 1} {
			if _, err := f.s.Claim(f.Context(), item.Claim{Group: "g", Duration: d}); !invalid(err) {
				f.Errorf("duration %s: got %v", d, err)
			}
		}
	},

	// The smaller id and the one that was added first each win 10 to 90 %.
	"Claim/IsRandomAmongItems": func(f *fixture) {
		first := 0
		const trials = 60
		for range trials {
			made := f.add("g", "first", "second")
			it := f.mustClaim(f.s, "g", time.Hour)
			if string(it.Data) == "first" {
				first++
			}
			rest := f.owned("g")
			if len(rest) != 2 || it.ID <= made[1].ID {
				f.Fatalf("claimed %+v, there is %+v", it, rest)
			}
			f.update(f.s, item.Update{Deletes: ids(rest)})
		}
		if first < trials/10 || first > trials*9/10 {
			f.Errorf("the first of two was claimed %d of %d times", first, trials)
		}
	},

	"Claim/TakesOneOfThe64Oldest": func(f *fixture) {
		var u item.Update
		for i := range 70 { // those added last are the oldest
			u.Adds = append(u.Adds, item.Add{Group: "g", At: item.When(1_000 - i), Data: []byte{byte(i)}})
		}
		f.update(f.s, u)
		seen := map[byte]bool{}
		for range 6 {
			it := f.mustClaim(f.s, "g", time.Hour)
			if i := it.Data[0]; int(i) < 6-len(seen) {
				f.Errorf("claimed item %d, which is none of the 64 oldest", i)
			}
			seen[it.Data[0]] = true
		}
	},

	"Claim/NeverGivesOneItemToTwo": func(f *fixture) {
		const items, clients = 60, 6
		var u item.Update
		for i := range items {
			u.Adds = append(u.Adds, item.Add{Group: "g", Data: []byte{byte(i)}})
		}
		f.update(f.s, u)
		var mu sync.Mutex
		claimed := map[byte]int{}
		var wg sync.WaitGroup
		for c := range clients {
			s := f.open(int64(10 + c))
			wg.Go(func() {
				for {
					it, err := s.TryClaim(f.Context(), item.Claim{Group: "g", Duration: time.Hour})
					if err != nil {
						f.Error(err)
					}
					if it == nil {
						return
					}
					mu.Lock()
					claimed[it.Data[0]]++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for i, n := range claimed {
			if n != 1 {
				f.Errorf("item %d was claimed %d times", i, n)
			}
		}
		if len(claimed) != items {
			f.Errorf("%d items were claimed, want %d", len(claimed), items)
		}
	},

	"Claim/WaitsNoLongerThanItSays": func(f *fixture) {
		began := time.Now()
		it, err := f.s.Claim(f.Context(), item.Claim{Group: "none", Wait: 100 * time.Millisecond})
		if took := time.Since(began); it != nil || err != nil || took < 100*time.Millisecond || took > 100*time.Millisecond+f.subject.Slack {
			f.Errorf("got %v, %v after %s", it, err, took)
		}
	},

	"Claim/AWaitingOneIsWokenByAnAdd": func(f *fixture) {
		f.wakes(func() { f.add("g", "data") })
	},

	"Claim/AWaitingOneIsWokenByARelease": func(f *fixture) {
		f.add("g", "data")
		it := f.mustClaim(f.other, "g", time.Hour)
		f.wakes(func() { f.update(f.other, item.Update{Changes: []item.Change{{ID: it.ID, Keep: true}}}) })
	},

	"Claim/AWaitingOneIsWokenWhenAnItemFallsDueAndNotBefore": func(f *fixture) {
		it := f.update(f.other, item.Update{Adds: []item.Add{{Group: "g", At: after(300 * time.Millisecond), Data: []byte("data")}}})[0]
		is := f.wakes(func() {})
		if got := is.At.Time().Add(-time.Hour); got.Before(it.At.Time()) {
			f.Errorf("claimed at %s, which is before %s", got, it.At.Time())
		}
	},

	"Claim/AsManyAreWokenAsItemsFallDue": func(f *fixture) {
		const n = 4
		var u item.Update
		for range n {
			u.Adds = append(u.Adds, item.Add{Group: "g", At: after(300 * time.Millisecond)})
		}
		f.update(f.other, u)
		var got atomic.Int32
		var wg sync.WaitGroup
		began := time.Now()
		for range n {
			wg.Go(func() {
				it, err := f.s.Claim(f.Context(), item.Claim{Group: "g", Duration: time.Hour, Wait: 10 * time.Second})
				if err != nil {
					f.Error(err)
				}
				if it != nil {
					got.Add(1)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); got.Load() != n || took > 300*time.Millisecond+2*f.subject.Slack {
			f.Errorf("%d of %d have an item after %s", got.Load(), n, took)
		}
	},

	"Claim/AWaitingOneIsRefusedOnceWhatItDependsOnIsGone": func(f *fixture) {
		f.add("other", "lock")
		done := make(chan error, 1)
		go func() {
			it, err := f.s.Claim(f.Context(), item.Claim{Group: "g", Depends: []int64{1}, Wait: 10 * time.Second})
			if it != nil {
				err = errors.Join(err, errors.New("it got an item"))
			}
			done <- err
		}()
		time.Sleep(50 * time.Millisecond)
		f.update(f.other, item.Update{Deletes: []int64{1}, Adds: []item.Add{{Group: "g"}}})
		f.refused(<-done, "depends 1")
		if got := f.list("g", taskstore.List{}); len(got) != 1 {
			f.Errorf("the item is not there: %v", got)
		}
	},

	// Where a network lies between, the store learns a moment later that nobody waits any more: what comes within that
	// moment may go to the one that has left, and is tried again.
	"Claim/EndsWithItsContextAndTakesNothingThen": func(f *fixture) {
		for i := range 5 {
			group := fmt.Sprint("g", i)
			ctx, cancel := context.WithTimeout(f.Context(), 50*time.Millisecond)
			it, err := f.s.Claim(ctx, item.Claim{Group: group, Wait: time.Minute})
			cancel()
			if it != nil || !errors.Is(err, context.DeadlineExceeded) {
				f.Fatalf("got %v, %v", it, err)
			}
			f.add(group, "data")
			time.Sleep(50 * time.Millisecond)
			if it, err = f.other.TryClaim(f.Context(), item.Claim{Group: group, Duration: time.Hour}); err != nil || it != nil {
				if err != nil {
					f.Error(err)
				}
				return
			}
		}
		f.Error("whoever has left takes what comes, each time")
	},

	"Key/ARepeatedUpdateIsAnsweredAsBeforeAndDoneOnce": func(f *fixture) {
		u := item.Update{Key: "k", Adds: []item.Add{{Group: "g", Data: []byte("a")}}}
		first := f.update(f.s, u)
		f.update(f.s, item.Update{Adds: []item.Add{{Group: "g"}}})
		if again := f.update(f.s, u); !slices.Equal(ids(again), ids(first)) || again[0].At != first[0].At {
			f.Errorf("answered %+v, and before %+v", again, first)
		}
		f.update(f.other, u) // of another client it is another
		if got := len(f.owned("g")); got != 3 {
			f.Errorf("%d items are there, want 3", got)
		}
	},

	"Key/ARepeatedClaimGetsTheSameItem": func(f *fixture) {
		f.add("g", "a", "b")
		c := item.Claim{Key: "k", Group: "g", Duration: time.Hour}
		first, err := f.s.TryClaim(f.Context(), c)
		again, err2 := f.s.TryClaim(f.Context(), c)
		if err != nil || err2 != nil || first == nil || again == nil || again.ID != first.ID || string(again.Data) != string(first.Data) {
			f.Errorf("claimed %+v, %v and %+v, %v", first, err, again, err2)
		}
	},

	"Key/AnotherRequestUnderItIsRefused": func(f *fixture) {
		u := item.Update{Key: "k", Adds: []item.Add{{Group: "g", Data: []byte("a")}}}
		f.update(f.s, u)
		f.unchanged(func() {
			u.Adds[0].Data = []byte("b")
			if _, err := f.s.Update(f.Context(), u); !errors.Is(err, task.ErrOtherRequest) {
				f.Errorf("got %v", err)
			}
			if _, err := f.s.TryClaim(f.Context(), item.Claim{Key: "k", Group: "g"}); !errors.Is(err, task.ErrOtherRequest) {
				f.Errorf("got %v", err)
			}
		})
	},

	"Key/AFailureIsNotKept": func(f *fixture) {
		u := item.Update{Key: "k", Depends: []int64{1}}
		_, err := f.s.Update(f.Context(), u)
		f.refused(err, "depends 1")
		f.add("g", "a")
		f.update(f.s, u)
	},

	"Key/TheLast64OfAClientAreKept": func(f *fixture) {
		u := item.Update{Key: "oldest", Adds: []item.Add{{Group: "g"}}}
		first := f.update(f.s, u)
		for i := range 63 {
			f.update(f.s, item.Update{Key: fmt.Sprint("k", i), Adds: []item.Add{{Group: "h"}}})
		}
		if again := f.update(f.s, u); again[0].ID != first[0].ID {
			f.Errorf("answered %d, and before %d", again[0].ID, first[0].ID)
		}
	},
}

// due waits until an item is available.
func (f *fixture) due(it *item.Item) {
	f.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if slices.ContainsFunc(f.list(it.Group, taskstore.List{}), func(is item.Item) bool { return is.ID == it.ID }) {
			return
		}
		if time.Now().After(end) {
			f.Fatalf("item %d is not available", it.ID)
		}
	}
}

// wakes fails the test unless a claim that waits gets an item soon after something was done.
func (f *fixture) wakes(do func()) *item.Item {
	f.Helper()
	type answer struct {
		it  *item.Item
		err error
	}
	done := make(chan answer, 1)
	go func() {
		it, err := f.s.Claim(f.Context(), item.Claim{Group: "g", Duration: time.Hour, Wait: time.Minute})
		done <- answer{it, err}
	}()
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	do()
	got := <-done
	if took := time.Since(began); got.err != nil || got.it == nil || string(got.it.Data) != "data" || took > 300*time.Millisecond+f.subject.Slack {
		f.Fatalf("got %+v, %v after %s", got.it, got.err, took)
	}
	return got.it
}
