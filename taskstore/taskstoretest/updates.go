package taskstoretest

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"taskledger/taskstore"
)

const minute = taskstore.When(-60_000)

var updates = []property{
	{"AddedItemsAreTheCallersAndAvailableNow", func(b *bench) {
		before := time.Now().Add(-time.Second).UnixMilli()
		var u taskstore.Update
		for i, g := range []string{"g1", "g1", "g2", "g2", "g3", "g3"} {
			u.Adds = append(u.Adds, taskstore.Add{Group: g, Data: []byte(strconv.Itoa(i))})
		}
		made := b.update(u)
		for i, it := range made {
			if it.ID != int64(i+1) || it.Owner != b.s.Client() || it.Group != u.Adds[i].Group || string(it.Data) != strconv.Itoa(i) {
				b.Errorf("added %+v", it)
			}
			if int64(it.At) < before || int64(it.At) > time.Now().Add(time.Second).UnixMilli() {
				b.Errorf("available at %d, want now", it.At)
			}
			b.same(b.task(it.ID), it)
		}
		if got := b.groups(); !slices.Equal(got, []string{"g1", "g2", "g3"}) {
			b.Errorf("groups %q", got)
		}
		if got := b.list(taskstore.Page{Group: "g1", Owned: true}); len(got) != 2 {
			b.Errorf("group %+v", got)
		}
	}},
	{"NothingIsThereBeforeTheFirstUse", func(b *bench) {
		if g, l, it, c := b.groups(), b.list(taskstore.Page{Group: "none"}), b.task(1), b.claim(b.s, "none", time.Second, 0); len(g) > 0 || len(l) > 0 || it != nil || c != nil {
			b.Errorf("groups %q, list %v, task %v, claimed %v", g, l, it, c)
		}
	}},
	{"ChangeGivesANewIDAndHoldsForItsOwnerAlone", func(b *bench) {
		it := b.add("g", "data")
		b.add("g", "other")
		renewed := b.update(taskstore.Update{Changes: []taskstore.Change{{ID: it.ID, At: taskstore.When(it.At) + 60_000, Data: []byte("new")}}})[0]
		if renewed.ID <= 2 || renewed.Group != "g" || renewed.At-it.At != 60_000 || string(renewed.Data) != "new" {
			b.Fatalf("renewed %+v of %+v", renewed, it)
		}
		if free := b.list(taskstore.Page{Group: "g"}); len(free) != 1 || free[0].ID != 2 {
			b.Errorf("available: %+v", free)
		}
		again := b.update(taskstore.Update{Changes: []taskstore.Change{keep(renewed.ID, taskstore.When(renewed.At)+1_000)}})[0]
		if again.At-renewed.At != 1_000 || string(b.task(again.ID).Data) != "new" {
			b.Errorf("pushed %+v", again)
		}
		b.refused(b.other, taskstore.Update{Changes: []taskstore.Change{keep(again.ID, 0)}}, heldBy("updates", again.ID))
		b.refused(b.other, taskstore.Update{Deletes: []int64{again.ID}}, heldBy("deletes", again.ID))
		b.refused(b.s, taskstore.Update{Changes: []taskstore.Change{keep(it.ID, 0)}}, gone("updates", it.ID))
		b.refused(b.s, taskstore.Update{Depends: []int64{it.ID}, Adds: []taskstore.Add{{Group: "g"}}}, gone("depends", it.ID))
	}},
	{"AnybodyDeletesWhatIsAvailable", func(b *bench) {
		it := b.add("g", "data")
		if made := b.updateBy(b.other, taskstore.Update{Deletes: []int64{it.ID}}); len(made) != 0 {
			b.Errorf("a delete made %+v", made)
		}
		if b.task(it.ID) != nil || len(b.groups()) != 0 {
			b.Error("it is there")
		}
	}},
	{"EveryProblemIsToldAndNothingApplied", func(b *bench) {
		mine := b.update(taskstore.Update{Adds: []taskstore.Add{{Group: "g", At: minute}}})[0].ID
		free := b.add("g", "").ID
		b.refused(b.other, taskstore.Update{Depends: []int64{77}, Deletes: []int64{78, mine}, Changes: []taskstore.Change{keep(79, 0), keep(free, 0)}, Adds: []taskstore.Add{{Group: "x"}}},
			gone("depends", 77), gone("deletes", 78), heldBy("deletes", mine), gone("updates", 79))
		if next := b.add("g", ""); next.ID != free+1 {
			b.Errorf("a refused update has used ids: the next is %d after %d", next.ID, free)
		}
	}},
	{"AnswerHasAddsThenChangesInRequestOrder", func(b *bench) {
		x, y := b.add("g", "x").ID, b.add("g", "y").ID
		made := b.update(taskstore.Update{Changes: []taskstore.Change{{ID: y, Data: []byte("Y")}, {ID: x, Data: []byte("X")}}, Adds: []taskstore.Add{{Group: "a"}, {Group: "b"}}})
		var got []string
		for _, it := range made {
			got = append(got, strconv.FormatInt(it.ID, 10)+it.Group+string(it.Data))
		}
		if !slices.Equal(got, []string{"3a", "4b", "5gY", "6gX"}) {
			b.Errorf("made %q", got)
		}
	}},
	{"ChangeNamesItsOwnGroupOrNone", func(b *bench) {
		it := b.add("g", "data")
		u := taskstore.Update{Changes: []taskstore.Change{{ID: it.ID, Group: "other", Keep: true}}}
		b.refused(b.s, u, problem("updates", it.ID, ""))
		u.Changes[0].Group = "g"
		b.update(u)
	}},
	{"DependsAloneAreACheck", func(b *bench) {
		it := b.add("g", "data")
		if made := b.updateBy(b.other, taskstore.Update{Depends: []int64{it.ID}}); len(made) != 0 {
			b.Errorf("a check made %+v", made)
		}
		b.same(b.task(it.ID), it)
		b.refused(b.s, taskstore.Update{Depends: []int64{it.ID, 99}}, gone("depends", 99))
	}},
	{"SameIDMayBeInDependsAndElsewhere", func(b *bench) {
		x, y := b.add("g", "x").ID, b.add("g", "y").ID
		b.update(taskstore.Update{Depends: []int64{x, y}, Deletes: []int64{x}, Changes: []taskstore.Change{keep(y, 0)}})
	}},
	{"ItemsComeInTheOrderAskedWithRepeats", func(b *bench) {
		x, y := b.add("g", "x").ID, b.add("g", "y").ID
		all, err := b.s.Tasks(b.ctx, y, 99, x, y)
		if err != nil || len(all) != 4 || all[1] != nil {
			b.Fatalf("%v, %v", all, err)
		}
		if string(all[0].Data)+string(all[2].Data)+string(all[3].Data) != "yxy" {
			b.Errorf("got %v", all)
		}
	}},
	{"GroupIsListedByIDOverAllPagesUpToALimit", func(b *bench) {
		for range 3 {
			u := taskstore.Update{}
			for range 900 {
				u.Adds = append(u.Adds, taskstore.Add{Group: "g"})
			}
			b.update(u)
		}
		for _, limit := range []int{0, 1, 1_000, 1_001, 2_699} {
			all := b.list(taskstore.Page{Group: "g", Limit: limit})
			if want := cmp.Or(limit, 2_700); len(all) != want {
				b.Errorf("limit %d: %d items, want %d", limit, len(all), want)
			}
			for i := range all {
				if all[i].ID != int64(i+1) {
					b.Fatalf("item %d has id %d", i, all[i].ID)
				}
			}
		}
		after := b.list(taskstore.Page{Group: "g", After: 2_690, Limit: 5})
		if len(after) != 5 || after[0].ID != 2_691 {
			b.Errorf("after 2690: %d items", len(after))
		}
		for range b.s.Group(b.ctx, taskstore.Page{Group: "g"}) { // who stops early is heeded
			break
		}
	}},
	{"LinearReadsHoldWhatWasChangedBefore", func(b *bench) {
		b.add("g", "x")
		linear := b.other.Linear()
		names, err := linear.Groups(b.ctx)
		it, err2 := linear.Task(b.ctx, 1)
		if err != nil || err2 != nil || len(names) != 1 || it == nil {
			b.Errorf("%q, %v, %v, %v", names, err, it, err2)
		}
		n := 0
		for _, err := range linear.Group(b.ctx, taskstore.Page{Group: "g"}) {
			if n++; err != nil {
				b.Error(err)
			}
		}
		if n != 1 {
			b.Errorf("%d items", n)
		}
	}},
	{"RepeatedUpdateIsAnsweredAsBefore", func(b *bench) {
		u := taskstore.Update{Key: "k", Adds: []taskstore.Add{{Group: "g", Data: []byte("x")}}}
		first, second := b.update(u), b.update(u)
		b.same(&second[0], first[0])
		if all := b.whole(); len(all) != 1 {
			b.Errorf("%d items", len(all))
		}
		u.Adds[0].Data = []byte("y")
		if _, err := b.s.Update(b.ctx, &u); !isOther(err) {
			b.Errorf("another body: %v", err)
		}
		if made := b.updateBy(b.other, u); made[0].ID != 2 {
			b.Errorf("another client's key: %+v", made)
		}
	}},
}
