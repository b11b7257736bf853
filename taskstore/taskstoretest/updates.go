package taskstoretest

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"taskledger/item"
	"taskledger/store"
	"taskledger/taskstore"
)

// These are the tests of the original store, and one for each of its defects that concerns updates.
var updates = map[string]func(f *fixture){
	"Update/AddsGetIdsInOrderAndAreTheirClientsAndAvailableNow": func(f *fixture) {
		before := time.Now().Add(-f.subject.Slack).UnixMilli()
		made := f.update(f.s, item.Update{Adds: []item.Add{{Group: "g1", Data: []byte("a")}, {Group: "g1", Data: []byte("b")}, {Group: "g2"}, {Group: "g2"}, {Group: "g3"}, {Group: "g3"}}})
		if !slices.Equal(ids(made), []int64{1, 2, 3, 4, 5, 6}) {
			f.Errorf("ids %v, want 1 to 6", ids(made))
		}
		for _, it := range made {
			if now := time.Now().Add(f.subject.Slack).UnixMilli(); it.Owner != 1 || int64(it.At) < before || int64(it.At) > now {
				f.Errorf("item %+v, want owner 1 and a time of %d to %d", it, before, now)
			}
		}
		if string(made[0].Data) != "a" || string(made[1].Data) != "b" || len(made[2].Data) != 0 || made[1].Group != "g1" || made[5].Group != "g3" {
			f.Errorf("made %+v", made)
		}
		groups, err := f.s.Groups(f.Context())
		if err != nil || !slices.Equal(groups, []string{"g1", "g2", "g3"}) {
			f.Errorf("groups %q, %v", groups, err)
		}
		if got := f.owned("g1"); len(got) != 2 || string(got[1].Data) != "b" {
			f.Errorf("group g1 has %+v", got)
		}
	},

	"Update/AnUnknownGroupAndAnUnknownStoreAreEmpty": func(f *fixture) {
		groups, err := f.s.Groups(f.Context())
		if got := f.owned("none"); len(got) != 0 || len(groups) != 0 || err != nil {
			f.Errorf("items %v, groups %v, %v", got, groups, err)
		}
		if it, err := f.s.Task(f.Context(), 1); it != nil || err != nil {
			f.Errorf("item %v, %v", it, err)
		}
	},

	"Update/ARenewalGetsANewIdAndTheExactTimeAndHidesTheItemFromAllButItsOwner": func(f *fixture) {
		was := f.add("g", "a", "b")[0]
		at := was.At.Add(time.Hour)
		is := f.update(f.s, item.Update{Changes: []item.Change{{ID: was.ID, At: item.When(at), Keep: true}}})[0]
		if is.ID != 3 || is.Group != "g" || is.At != at || is.Owner != 1 {
			f.Errorf("renewed %+v, want id 3 and the time %d", is, at)
		}
		if got := f.list("g", taskstore.List{}); len(got) != 1 || got[0].ID != 2 {
			f.Errorf("available are %+v, want item 2", got)
		}
		again := f.update(f.s, item.Update{Changes: []item.Change{{ID: is.ID, At: item.When(at.Add(time.Second)), Data: []byte("c")}}})[0]
		if again.At != at.Add(time.Second) || string(again.Data) != "c" {
			f.Errorf("pushed to %+v", again)
		}
		f.unchanged(func() {
			_, err := f.other.Update(f.Context(), item.Update{Changes: []item.Change{{ID: again.ID}}})
			f.refused(err, "updates 4")
			_, err = f.other.Update(f.Context(), item.Update{Deletes: []int64{again.ID}})
			f.refused(err, "deletes 4")
		})
	},

	"Update/StaleIdsAreRefusedInDependsDeletesAndUpdates": func(f *fixture) {
		was := f.add("g", "a")[0]
		f.update(f.s, item.Update{Changes: []item.Change{{ID: was.ID}}})
		f.unchanged(func() {
			for field, u := range map[string]item.Update{
				"depends 1": {Depends: []int64{1}, Adds: []item.Add{{Group: "g"}}},
				"deletes 1": {Deletes: []int64{1}},
				"updates 1": {Changes: []item.Change{{ID: 1}}},
			} {
				_, err := f.s.Update(f.Context(), u)
				f.refused(err, field)
			}
		})
	},

	"Update/AllProblemsAreToldInOrderAndNothingIsApplied": func(f *fixture) {
		f.add("g", "a", "b")
		f.update(f.other, item.Update{Changes: []item.Change{{ID: 1, At: after(time.Hour)}}}) // 3
		f.unchanged(func() {
			_, err := f.s.Update(f.Context(), item.Update{
				Adds: []item.Add{{Group: "g"}}, Changes: []item.Change{{ID: 92}, {ID: 2, Group: "h"}, {ID: 91}}, Deletes: []int64{93, 3}, Depends: []int64{95, 2, 94},
			})
			f.refused(err, "depends 95", "depends 94", "deletes 93", "deletes 3", "updates 92", "updates 2", "updates 91")
		})
		if next := f.add("g", "c"); next[0].ID != 4 {
			f.Errorf("the next id is %d, want 4: a refused update takes none", next[0].ID)
		}
	},

	"Update/WhatIsAvailableIsAnybodysToDeleteAndADeleteReturnsNothing": func(f *fixture) {
		f.add("g", "a", "b")
		if made := f.update(f.other, item.Update{Deletes: []int64{1}}); len(made) != 0 {
			f.Errorf("a delete has made %v", made)
		}
		made := f.update(f.other, item.Update{Changes: []item.Change{{ID: 2, Data: []byte("c")}}})
		if made[0].Owner != 2 || len(f.owned("g")) != 1 {
			f.Errorf("made %+v, there is %+v", made, f.owned("g"))
		}
	},

	"Update/IsDoneWholeAddsBeforeUpdatesAndWhatIsThereIsWhatItAnswered": func(f *fixture) {
		f.add("g", "a", "b", "c")
		made := f.update(f.s, item.Update{Depends: []int64{3}, Deletes: []int64{1}, Changes: []item.Change{{ID: 2, Data: []byte("b2")}}, Adds: []item.Add{{Group: "h", Data: []byte("d")}, {Group: "g"}}})
		if !slices.Equal(ids(made), []int64{4, 5, 6}) || string(made[0].Data) != "d" || string(made[2].Data) != "b2" {
			f.Errorf("made %+v", made)
		}
		if got := ids(f.owned("g")); !slices.Equal(got, []int64{3, 5, 6}) {
			f.Errorf("group g has %v", got)
		}
		found, err := f.other.Linear().Tasks(f.Context(), 6, 1, 4, 6, 2, 5)
		if err != nil {
			f.Fatal(err)
		}
		for i, want := range []*item.Item{&made[2], nil, &made[0], &made[2], nil, &made[1]} {
			if got := found[i]; (got == nil) != (want == nil) || got != nil && (got.ID != want.ID || got.At != want.At || got.Owner != want.Owner || got.Group != want.Group || !bytes.Equal(got.Data, want.Data)) {
				f.Errorf("asked for the %d. item: got %+v, want %+v", i+1, got, want)
			}
		}
	},

	"Update/KeepLeavesTheDataAsTheyAreAndLeavingThemOutEmptiesThem": func(f *fixture) {
		f.add("g", "a", "b")
		f.update(f.s, item.Update{Changes: []item.Change{{ID: 1, Keep: true}, {ID: 2}}})
		if got := f.owned("g"); len(got) != 2 || string(got[0].Data) != "a" || len(got[1].Data) != 0 {
			f.Errorf("there is %+v", got)
		}
	},

	"Update/DependsAloneIsACheck": func(f *fixture) {
		f.add("g", "a")
		f.unchanged(func() {
			f.update(f.s, item.Update{Depends: []int64{1, 1}})
			_, err := f.s.Update(f.Context(), item.Update{Depends: []int64{2}})
			f.refused(err, "depends 2")
		})
	},

	"Update/AnIdMayBeInDependsAndInDeletesOrUpdates": func(f *fixture) {
		f.add("g", "a", "b")
		made := f.update(f.s, item.Update{Depends: []int64{1, 2}, Deletes: []int64{1}, Changes: []item.Change{{ID: 2}}})
		if got := ids(f.owned("g")); !slices.Equal(got, ids(made)) {
			f.Errorf("there is %v, want %v", got, ids(made))
		}
	},

	"Update/DependsOnWhatAnotherHoldsIsMet": func(f *fixture) {
		f.add("g", "a")
		held := f.mustClaim(f.other, "g", time.Hour)
		f.update(f.s, item.Update{Depends: []int64{held.ID}, Adds: []item.Add{{Group: "h"}}})
	},

	"Update/TimesCountFromTheEntryIfTheyAreNotPositiveAndStayAsGivenElse": func(f *fixture) {
		made := f.update(f.s, item.Update{Adds: []item.Add{{Group: "g"}, {Group: "g", At: after(time.Hour)}, {Group: "g", At: 60_000}, {Group: "g", At: item.MaxTime}}})
		if made[1].At != made[0].At.Add(time.Hour) || made[2].At != 60_000 || made[3].At != 253_402_300_799_999 {
			f.Errorf("times %d %d %d %d", made[0].At, made[1].At, made[2].At, made[3].At)
		}
	},

	"Update/BadInputIsRefusedByFieldAndNothingIsApplied": func(f *fixture) {
		f.add("g", "a", "b")
		many := make([]int64, item.MaxIDs+1)
		for i := range many {
			many[i] = int64(i) + 1
		}
		f.unchanged(func() {
			for name, c := range map[string]struct {
				field string
				u     item.Update
			}{
				"empty update":           {"update", item.Update{}},
				"id twice in deletes":    {"deletes", item.Update{Deletes: []int64{1, 1}}},
				"id twice in updates":    {"updates", item.Update{Changes: []item.Change{{ID: 1}, {ID: 1}}}},
				"id deleted and updated": {"updates", item.Update{Deletes: []int64{1}, Changes: []item.Change{{ID: 1}}}},
				"no group":               {"adds[0].group", item.Update{Adds: []item.Add{{}}}},
				"long group":             {"adds[1].group", item.Update{Adds: []item.Add{{Group: "g"}, {Group: strings.Repeat("é", 129)}}}},
				"group that is no UTF-8": {"adds[0].group", item.Update{Adds: []item.Add{{Group: "\xff"}}}},
				"id 0":                   {"deletes[0]", item.Update{Deletes: []int64{0}}},
				"negative id":            {"depends[0]", item.Update{Depends: []int64{-1}}},
				"id beyond 2^53":         {"updates[0].id", item.Update{Changes: []item.Change{{ID: item.MaxNumber + 1}}}},
				"time beyond year 9999":  {"adds[0].timespec", item.Update{Adds: []item.Add{{Group: "g", At: item.MaxTime + 1}}}},
				"amount that overflows":  {"updates[0].timespec", item.Update{Changes: []item.Change{{ID: 1, At: math.MinInt64}}}},
				"keep with data":         {"updates[0].keep", item.Update{Changes: []item.Change{{ID: 1, Keep: true, Data: []byte("x")}}}},
				"more than 1,000 ids":    {"update", item.Update{Depends: many}},
				"data beyond the limit":  {"update", item.Update{Adds: []item.Add{{Group: "g", Data: make([]byte, item.MaxBytes)}}}},
			} {
				_, err := f.s.Update(f.Context(), c.u)
				if bad, is := errors.AsType[*store.InvalidError](err); !is || bad.Field != c.field {
					f.Errorf("%s: got %v, want the field %s", name, err, c.field)
				}
			}
		})
		// Asked past the library, which checks first.
		u := item.Update{Client: 1}
		if _, err := f.subject.Backend.Update(f.Context(), f.name, &u); !invalid(err) {
			f.Errorf("empty update: %v", err)
		}
		u = item.Update{Depends: []int64{1}}
		if _, err := f.subject.Backend.Update(f.Context(), f.name, &u); !invalid(err) {
			f.Errorf("no client: %v", err)
		}
	},

	"Update/TheLargestOneIsTaken": func(f *fixture) {
		var u item.Update
		for range item.MaxIDs {
			u.Adds = append(u.Adds, item.Add{Group: "g"})
		}
		made := f.update(f.s, u)
		all := f.owned("g")
		if !slices.Equal(ids(made), ids(all)) {
			f.Errorf("%d made, %d there", len(made), len(all))
		}
		f.update(f.s, item.Update{Deletes: ids(made)})
		big := make([]byte, item.MaxBytes-item.ItemBytes-len("g"))
		for i := range big {
			big[i] = byte(i * 7) // no UTF-8
		}
		f.update(f.s, item.Update{Adds: []item.Add{{Group: "g", Data: big}}})
		if got := f.owned("g"); len(got) != 1 || !bytes.Equal(got[0].Data, big) {
			f.Errorf("%d items are there", len(got))
		}
	},
}

func invalid(err error) bool {
	_, is := errors.AsType[*store.InvalidError](err)
	return is
}
