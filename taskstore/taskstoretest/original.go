package taskstoretest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"taskledger/item"
	"taskledger/store"
	"taskledger/taskstore"
)

// originals are one test for each defect that the original store and its successor were seen to have, as far as a
// library shows it.
var originals = map[string]func(f *fixture){
	// It stood still after two updates of eight writers.
	"Original/EightWritersAtOnceAllGetThrough": func(f *fixture) {
		const writers, each = 8, 5
		var wg sync.WaitGroup
		for c := range writers {
			s := f.open(int64(30 + c))
			wg.Go(func() {
				for range each {
					if _, err := s.Update(f.Context(), item.Update{Adds: []item.Add{{Group: "g"}}}); err != nil {
						f.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := len(f.owned("g")); got != writers*each {
			f.Errorf("%d items are there, want %d", got, writers*each)
		}
	},

	"Original/AnIdTwiceInUpdatesMakesNoSecondItem": func(f *fixture) {
		f.add("g", "a")
		f.refusedAsBad("updates", item.Update{Changes: []item.Change{{ID: 1, Data: []byte("b")}, {ID: 1, Data: []byte("c")}}})
	},

	// The original kept such an item, and its successor ended for all.
	"Original/AnIdInUpdatesAndDeletesIsRefusedAndTheStoreGoesOn": func(f *fixture) {
		f.add("g", "a")
		f.refusedAsBad("updates", item.Update{Changes: []item.Change{{ID: 1}}, Deletes: []int64{1}})
		f.update(f.s, item.Update{Deletes: []int64{1}})
	},

	"Original/AnIdTwiceInDeletesIsRefused": func(f *fixture) {
		f.add("g", "a")
		f.refusedAsBad("deletes", item.Update{Deletes: []int64{1, 1}})
	},

	"Original/AnEmptyUpdateIsNoSuccess": func(f *fixture) {
		f.refusedAsBad("update", item.Update{})
	},

	"Original/AClaimForANegativeTimeIsRefusedAndNotCutToNothing": func(f *fixture) {
		f.add("g", "a")
		f.unchanged(func() {
			if it, err := f.s.TryClaim(f.Context(), item.Claim{Group: "g", Duration: -time.Second}); it != nil || !invalid(err) {
				f.Errorf("got %v, %v", it, err)
			}
		})
	},

	// A backend of its successor asked only for the id.
	"Original/WhoKnowsTheIdOfWhatAnotherHoldsCannotDeleteOrRenewIt": func(f *fixture) {
		f.add("g", "a")
		it := f.mustClaim(f.s, "g", time.Hour)
		f.unchanged(func() {
			_, err := f.other.Update(f.Context(), item.Update{Deletes: []int64{it.ID}})
			f.refused(err, "deletes 2")
			_, err = f.other.Update(f.Context(), item.Update{Changes: []item.Change{{ID: it.ID, Keep: true, At: after(time.Hour)}}})
			f.refused(err, "updates 2")
		})
	},

	// A renewal of its successor over the network released the claim.
	"Original/ARenewalReleasesNothing": func(f *fixture) {
		f.add("g", "a")
		it := f.mustClaim(f.s, "g", time.Minute)
		f.update(f.s, item.Update{Changes: []item.Change{{ID: it.ID, Keep: true, At: after(time.Hour)}}})
		if got := f.claim(f.other, "g", time.Hour); got != nil {
			f.Errorf("another has claimed %+v", got)
		}
	},

	// An update of its successor that said no time stored one of the year 1.
	"Original/AChangeThatSaysNoTimeIsAvailableNowAndNotLongAgo": func(f *fixture) {
		was := f.add("g", "a")[0]
		is := f.update(f.s, item.Update{Changes: []item.Change{{ID: was.ID}}})[0]
		if is.At < was.At {
			f.Errorf("available at %d, which is before %d", is.At, was.At)
		}
	},
}

// originalRestarts holds the tests that take a restart.
var originalRestarts = map[string]func(f *fixture){
	"Original/RestartsInARowWithAnAddEachLoseNothingAndUseNoIdTwice": func(f *fixture) {
		for n := range int64(4) {
			if it := f.add("g", "a")[0]; it.ID != n+1 {
				f.Errorf("id %d, want %d", it.ID, n+1)
			}
			f.subject.Restart(f.T)
		}
		if got := ids(f.owned("g")); !slices.Equal(got, []int64{1, 2, 3, 4}) {
			f.Errorf("there is %v", got)
		}
	},

	// What its successor had read from a snapshot could not be changed, renewed or found.
	"Original/WhatWasThereBeforeARestartIsFoundClaimedRenewedAndDeleted": func(f *fixture) {
		f.add("g", "a", "b")
		held := f.mustClaim(f.s, "g", time.Hour) // 3
		f.subject.Restart(f.T)
		if it, err := f.s.Task(f.Context(), held.ID); err != nil || it == nil || it.At != held.At {
			f.Fatalf("found %+v, %v, want %+v", it, err, held)
		}
		other := f.mustClaim(f.s, "g", time.Hour)                                                                               // 4
		f.update(f.s, item.Update{Changes: []item.Change{{ID: held.ID, Keep: true, At: after(2 * time.Hour)}, {ID: other.ID}}}) // 5, 6
		f.update(f.s, item.Update{Deletes: []int64{5, 6}})
		if got := f.owned("g"); len(got) != 0 {
			f.Errorf("there is %+v", got)
		}
	},
}

// refusedAsBad fails the test unless an update is refused by a field, and changes nothing.
func (f *fixture) refusedAsBad(field string, u item.Update) {
	f.Helper()
	u.Client = f.s.Client()
	f.unchanged(func() {
		_, err := f.s.Update(f.Context(), u)
		_, past := f.subject.Backend.Update(f.Context(), f.name, &u)
		for who, err := range map[string]error{"the library": err, "what it asks": past} {
			if bad, is := errors.AsType[*store.InvalidError](err); !is || bad.Field != field {
				f.Errorf("%s: %v, want the field %s", who, err, field)
			}
		}
	})
}

// renewals tests the contract of the successor about claims, renewals and waiting, and repeats tests of the original
// store.
var renewals = map[string]func(f *fixture){
	"Sequence/WhatIsDueIsClaimedAtOnceAndWhatIsDueLaterByWhoWaits": func(f *fixture) {
		if it := f.claim(f.s, "g", time.Hour); it != nil {
			f.Errorf("claimed %+v of nothing", it)
		}
		made := f.update(f.s, item.Update{Adds: []item.Add{{Group: "g", Data: []byte("due")}, {Group: "g", Data: []byte("later"), At: after(3 * time.Second)}}})
		if got := made[1].At - made[0].At; got != 3_000 {
			f.Errorf("%d ms apart, want 3000", got)
		}
		if got := f.owned("g"); len(got) != 2 || got[0].At != made[0].At || got[1].At != made[1].At {
			f.Errorf("there is %+v, want %+v", got, made)
		}
		if it := f.mustClaim(f.s, "g", time.Hour); string(it.Data) != "due" || it.ID != 3 {
			f.Errorf("claimed %+v", it)
		}
		if it := f.claim(f.s, "g", time.Hour); it != nil && time.Now().UnixMilli() < int64(made[1].At) {
			f.Errorf("claimed %+v before its time", it)
		}
		it, err := f.s.Claim(f.Context(), item.Claim{Group: "g", Duration: time.Hour, Wait: 20 * time.Second})
		if err != nil || it == nil || string(it.Data) != "later" || it.At.Add(-time.Hour) < made[1].At {
			f.Errorf("claimed %+v, %v, want what was due at %d", it, err, made[1].At)
		}
	},

	"Change/ToALaterTimeIsStoredAndNotClaimedBefore": func(f *fixture) {
		was := f.add("g", "a")[0]
		is := f.update(f.s, item.Update{Changes: []item.Change{{ID: was.ID, At: item.When(was.At.Add(time.Hour)), Data: []byte("b")}}})[0]
		if got := f.owned("g"); len(got) != 1 || got[0].At != was.At.Add(time.Hour) || string(got[0].Data) != "b" || got[0].ID != is.ID {
			f.Errorf("there is %+v", got)
		}
		if it := f.claim(f.s, "g", time.Hour); it != nil {
			f.Errorf("claimed %+v", it)
		}
	},

	"Change/ToATimeLongAgoStaysAsGivenAndIsClaimed": func(f *fixture) {
		f.add("g", "a")
		is := f.update(f.s, item.Update{Changes: []item.Change{{ID: 1, At: 1}}})[0]
		if got := f.list("g", taskstore.List{}); is.At != 1 || len(got) != 1 || got[0].At != 1 {
			f.Errorf("made %+v, there is %+v", is, got)
		}
		f.mustClaim(f.other, "g", time.Hour)
	},

	"Renewal/HoldsForTheTimeAskedKeepsTheDataAndItsOldIdIsGone": func(f *fixture) {
		f.add("g", "a")
		it := f.mustClaim(f.s, "g", time.Minute)
		is := f.update(f.s, item.Update{Changes: []item.Change{{ID: it.ID, Keep: true, At: item.When(it.At.Add(time.Hour))}}})[0]
		if got := f.owned("g"); len(got) != 1 || got[0].ID != it.ID+1 || got[0].At != it.At.Add(time.Hour) || string(got[0].Data) != "a" || got[0].Owner != 1 || is.ID != got[0].ID {
			f.Errorf("renewed %+v, there is %+v", is, got)
		}
		f.unchanged(func() {
			_, err := f.s.Update(f.Context(), item.Update{Depends: []int64{it.ID}, Adds: []item.Add{{Group: "h"}}})
			f.refused(err, "depends 2")
		})
		f.update(f.s, item.Update{Depends: []int64{is.ID}})
	},

	"Renewal/AReleaseIsAvailableAtOnceToEverybodyAndSaysWhoHadIt": func(f *fixture) {
		f.add("g", "a")
		it := f.mustClaim(f.s, "g", time.Hour)
		f.update(f.s, item.Update{Changes: []item.Change{{ID: it.ID, Keep: true}}})
		if got := f.list("g", taskstore.List{}); len(got) != 1 || got[0].Owner != 1 || string(got[0].Data) != "a" {
			f.Errorf("available are %+v", got)
		}
		if it := f.mustClaim(f.other, "g", time.Hour); it.Owner != 2 || string(it.Data) != "a" {
			f.Errorf("claimed %+v", it)
		}
	},

	"Renewal/OfSomeAndReleaseOfOthersIsDoneTogetherOrNotAtAll": func(f *fixture) {
		f.add("g", "a", "b")
		one, two := f.mustClaim(f.s, "g", time.Hour), f.mustClaim(f.s, "g", time.Hour) // 3, 4
		renewed, released := item.Change{ID: one.ID, Keep: true, At: after(2 * time.Hour)}, item.Change{ID: two.ID, Keep: true}
		f.unchanged(func() {
			_, err := f.s.Update(f.Context(), item.Update{Changes: []item.Change{renewed, released, {ID: 1, Keep: true}}})
			f.refused(err, "updates 1")
		})
		made := f.update(f.s, item.Update{Changes: []item.Change{renewed, released}})
		if got := ids(f.list("g", taskstore.List{})); !slices.Equal(got, []int64{6}) || made[0].ID != 5 || made[0].At-made[1].At != 7_200_000 {
			f.Errorf("made %+v, available are %v", made, got)
		}
	},

	"Renewal/TimesOfOneUpdateCountFromOneMomentToTheMillisecond": func(f *fixture) {
		f.add("g", "a")
		made := f.update(f.s, item.Update{Adds: []item.Add{{Group: "g"}, {Group: "g", At: after(7 * time.Millisecond)}}, Changes: []item.Change{{ID: 1, At: after(time.Hour)}}})
		if made[1].At-made[0].At != 7 || made[2].At-made[0].At != 3_600_000 {
			f.Errorf("times %d, %d and %d", made[0].At, made[1].At, made[2].At)
		}
	},

	"Claim/FindsTheOnlyOneThatIsAvailableAmongManyThatAreHeld": func(f *fixture) {
		var u item.Update
		for range 100 {
			u.Adds = append(u.Adds, item.Add{Group: "g", At: after(time.Hour)})
		}
		u.Adds[57].At, u.Adds[57].Data = 0, []byte("it")
		f.update(f.other, u)
		if it := f.mustClaim(f.s, "g", time.Hour); string(it.Data) != "it" {
			f.Errorf("claimed %+v", it)
		}
		if it := f.claim(f.s, "g", time.Hour); it != nil {
			f.Errorf("claimed %+v, which is held", it)
		}
	},

	"Claim/TheOldestIsTakenNoMoreOftenThanTheOthers": func(f *fixture) {
		const items, trials = 8, 160
		var u item.Update
		for i := range items {
			u.Adds = append(u.Adds, item.Add{Group: "g", At: item.When(1 + i), Data: []byte{byte(i)}})
		}
		taken := map[byte]int{}
		f.update(f.s, u)
		for range trials {
			it := f.mustClaim(f.s, "g", time.Hour)
			taken[it.Data[0]]++
			f.update(f.s, item.Update{Changes: []item.Change{{ID: it.ID, Keep: true, At: item.When(1 + it.Data[0])}}})
		}
		// 20 of 160 are expected of each, and the original took the oldest 54 times.
		if taken[0] > 42 || len(taken) != items {
			f.Errorf("taken %v", taken)
		}
	},

	"Claim/OneItemWakesOneOfThoseWhoWaitAndTheOthersWaitOn": func(f *fixture) {
		const waiting = 3
		done := make(chan *item.Item, waiting)
		for range waiting {
			go func() {
				it, err := f.s.Claim(f.Context(), item.Claim{Group: "g", Duration: time.Hour, Wait: 2 * time.Second})
				if err != nil {
					f.Error(err)
				}
				done <- it
			}()
		}
		time.Sleep(50 * time.Millisecond)
		f.add("g", "data")
		got := 0
		for range waiting {
			if it := <-done; it != nil {
				got++
			}
		}
		if got != 1 {
			f.Errorf("%d of %d who waited have the only item", got, waiting)
		}
	},

	"Read/ALimitCountsWhatIsListedAndNotWhatIsHeldBeforeIt": func(f *fixture) {
		var u item.Update
		for range 20 {
			u.Adds = append(u.Adds, item.Add{Group: "g", At: after(time.Hour)})
		}
		u.Adds = append(u.Adds, item.Add{Group: "g"}, item.Add{Group: "g"})
		f.update(f.other, u)
		if got := ids(f.list("g", taskstore.List{Limit: 1})); !slices.Equal(got, []int64{21}) {
			f.Errorf("listed %v, want 21", got)
		}
	},
}
