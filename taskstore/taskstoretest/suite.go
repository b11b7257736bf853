// Package taskstoretest has what every task store promises, as one suite for all that can be used as one.
package taskstoretest

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"taskledger/item"
	"taskledger/store"
	"taskledger/taskstore"
)

// Store is what the suite asks of a store.
type Store interface {
	Groups(ctx context.Context) ([]string, error)
	Tasks(ctx context.Context, ids ...int64) ([]*item.Item, error)
	Group(ctx context.Context, name string, p item.Page) iter.Seq2[item.Item, error]
	Update(ctx context.Context, u *item.Update) ([]item.Item, error)
	Claim(ctx context.Context, c *item.Claim) (*item.Item, error)
}

// Run holds stores to their promises. open returns an empty store, and the same as another client uses it.
func Run(t *testing.T, open func(t *testing.T) (one, other Store)) {
	for name, test := range map[string]func(*fixture){
		"AddedTasksAreThereWithAnyBytes":             addedAreThere,
		"UpdateIsAllOrNothingAndTellsAllProblems":    allOrNothing,
		"ChangedTasksHaveNewIDsAndKeepTheirGroup":    changed,
		"IDsAreNeverUsedAgain":                       neverAgain,
		"WhatARequestAloneShowsIsRefusedByItsField":  badInput,
		"ClaimOfNothingIsNoError":                    claimNothing,
		"ClaimChecksDependsFirst":                    claimDepends,
		"ClaimedTaskIsNobodyElses":                   claimed,
		"LateOwnerIsRefused":                         late,
		"WaitingClaimIsWokenByWhatIsAdded":           woken,
		"WaitingClaimIsWokenByWhatFallsDue":          wokenByTime,
		"RepeatedKeyIsAnsweredAsBefore":              repeated,
		"GroupsAreListedByIDInPages":                 listed,
		"TaskThatIsReleasedIsAvailableAtOnce":        released,
		"DependsMayNameWhatTheSameUpdateRemoves":     dependsOnRemoved,
		"AnybodyMayChangeATaskThatNobodyHasClaimed":  unowned,
		"TaskOfTheFutureIsNotClaimableBeforeItsTime": future,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, other := open(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			t.Cleanup(cancel)
			test(&fixture{t, ctx, one, other})
		})
	}
}

// fixture is a store as two clients use it.
type fixture struct {
	*testing.T
	ctx   context.Context
	one   Store
	other Store
}

func (f *fixture) update(s Store, u *item.Update) []item.Item {
	f.Helper()
	got, err := s.Update(f.ctx, u)
	if err != nil {
		f.Fatal(err)
	}
	return got
}

func (f *fixture) add(datas ...string) []item.Item {
	f.Helper()
	u := &item.Update{}
	for _, data := range datas {
		u.Adds = append(u.Adds, item.Add{Group: "g", Data: []byte(data)})
	}
	return f.update(f.one, u)
}

// claim takes a task of group g.
func (f *fixture) claim(s Store, d time.Duration) *item.Item {
	f.Helper()
	got, err := s.Claim(f.ctx, &item.Claim{Group: "g", Duration: d})
	if err != nil {
		f.Fatal(err)
	}
	return got
}

func (f *fixture) tasks(ids ...int64) []*item.Item {
	f.Helper()
	got, err := f.one.Tasks(f.ctx, ids...)
	if err != nil {
		f.Fatal(err)
	}
	return got
}

func (f *fixture) group(name string, p item.Page) (all []item.Item) {
	f.Helper()
	for i, err := range f.one.Group(f.ctx, name, p) {
		if err != nil {
			f.Fatal(err)
		}
		all = append(all, i)
	}
	return all
}

// wantProblems asserts that an update or claim was refused for so many problems.
func (f *fixture) wantProblems(err error, n int) {
	f.Helper()
	var conflict *item.ConflictError
	if !errors.As(err, &conflict) || len(conflict.Problems) != n {
		f.Errorf("%v, want a conflict of %d problems", err, n)
	}
}

func addedAreThere(f *fixture) {
	all := []string{"", "text", "\x00\xff\xfe", "\xed\xa0\x80", "\"\\\u2028<>&"}
	made := f.add(all...)
	for i, got := range f.tasks(made[0].ID, made[1].ID, made[2].ID, made[3].ID, made[4].ID, 99, made[0].ID) {
		switch {
		case i == 5 && got != nil:
			f.Errorf("task 99 is %+v", got)
		case i < 5 && (got == nil || !bytes.Equal(got.Data, []byte(all[i])) || got.ID != int64(i+1) || got.Group != "g" || got.At == 0):
			f.Errorf("task %d is %+v, want data %q", i+1, got, all[i])
		case i == 6 && got == nil:
			f.Error("the second of the same id is missing")
		}
	}
}

func allOrNothing(f *fixture) {
	f.add("a", "b")
	_, err := f.other.Update(f.ctx, &item.Update{Depends: []int64{7}, Deletes: []int64{1, 8}, Changes: []item.Change{{ID: 2, Group: "h"}}, Adds: []item.Add{{Group: "g"}}})
	f.wantProblems(err, 3)
	if left := f.group("g", item.Page{Owned: true}); len(left) != 2 || left[0].ID != 1 || left[1].ID != 2 {
		f.Errorf("left are %+v", left)
	}
}

func changed(f *fixture) {
	f.add("a", "b")
	made := f.update(f.other, &item.Update{Changes: []item.Change{{ID: 2, Data: []byte("B")}, {ID: 1, Keep: true}}, Adds: []item.Add{{Group: "h"}}})
	if len(made) != 3 || made[0].ID != 3 || made[0].Group != "h" || made[1].ID != 4 || made[1].Group != "g" || made[2].ID != 5 || made[2].Group != "g" {
		f.Errorf("made %+v", made)
	}
	if got := f.tasks(1, 2, 4, 5); got[0] != nil || got[1] != nil || string(got[2].Data) != "B" || string(got[3].Data) != "a" {
		f.Errorf("now %+v", got)
	}
}

func neverAgain(f *fixture) {
	f.add("a", "b", "c")
	f.update(f.one, &item.Update{Deletes: []int64{1, 2, 3}})
	if made := f.add("d"); made[0].ID != 4 {
		f.Errorf("the next id is %d", made[0].ID)
	}
}

func badInput(f *fixture) {
	f.add("a")
	for name, u := range map[string]*item.Update{
		"nothing":            {},
		"an id twice":        {Deletes: []int64{1, 1}},
		"changed, deleted":   {Deletes: []int64{1}, Changes: []item.Change{{ID: 1}}},
		"changed twice":      {Changes: []item.Change{{ID: 1}, {ID: 1}}},
		"no group":           {Adds: []item.Add{{}}},
		"id 0":               {Deletes: []int64{0}},
		"id too large":       {Depends: []int64{item.MaxNumber + 1}},
		"the year 10000":     {Adds: []item.Add{{Group: "g", At: item.MaxTime + 1}}},
		"too many":           {Depends: make([]int64, item.MaxIDs+1)},
		"too much":           {Adds: []item.Add{{Group: "g", Data: make([]byte, item.MaxBytes)}}},
		"a negative client":  {Client: -1, Deletes: []int64{1}},
		"a client too large": {Client: item.MaxNumber + 1, Deletes: []int64{1}},
	} {
		var invalid *store.InvalidError
		if _, err := f.one.Update(f.ctx, u); !errors.As(err, &invalid) || invalid.Field == "" {
			f.Errorf("%s: %v, want an error that names the field", name, err)
		}
	}
	for name, c := range map[string]*item.Claim{
		"no group":        {Duration: time.Second},
		"no duration":     {Group: "g"},
		"a negative one":  {Group: "g", Duration: -time.Second},
		"more than a day": {Group: "g", Duration: 25 * time.Hour},
		"a long wait":     {Group: "g", Duration: time.Second, Wait: 2 * time.Minute},
	} {
		var invalid *store.InvalidError
		if _, err := f.one.Claim(f.ctx, c); !errors.As(err, &invalid) {
			f.Errorf("%s: %v, want an error that names the field", name, err)
		}
	}
	if left := f.group("g", item.Page{Owned: true}); len(left) != 1 || left[0].ID != 1 {
		f.Errorf("left are %+v", left)
	}
}

func claimNothing(f *fixture) {
	if got := f.claim(f.one, time.Second); got != nil {
		f.Errorf("claimed %+v", got)
	}
}

func claimDepends(f *fixture) {
	_, err := f.one.Claim(f.ctx, &item.Claim{Group: "g", Duration: time.Second, Depends: []int64{5}})
	f.wantProblems(err, 1)
}

func claimed(f *fixture) {
	f.add("a")
	got := f.claim(f.one, time.Hour)
	if got == nil || got.ID != 2 || string(got.Data) != "a" {
		f.Fatalf("claimed %+v", got)
	}
	if again := f.claim(f.other, time.Hour); again != nil {
		f.Errorf("claimed twice: %+v", again)
	}
	_, err := f.other.Update(f.ctx, &item.Update{Deletes: []int64{got.ID}})
	f.wantProblems(err, 1)
	if free := f.group("g", item.Page{}); len(free) != 0 {
		f.Errorf("available are %+v", free)
	}
	f.update(f.one, &item.Update{Deletes: []int64{got.ID}})
}

func late(f *fixture) {
	f.add("a")
	mine := f.claim(f.one, time.Millisecond)
	var theirs *item.Item
	for theirs == nil {
		theirs = f.claim(f.other, time.Hour)
	}
	for _, id := range []int64{mine.ID, theirs.ID} {
		_, err := f.one.Update(f.ctx, &item.Update{Deletes: []int64{id}})
		f.wantProblems(err, 1)
	}
	f.update(f.other, &item.Update{Deletes: []int64{theirs.ID}})
}

// waits claims a task of group g in the background.
func (f *fixture) waits() (answered chan *item.Item) {
	answered = make(chan *item.Item, 1)
	go func() {
		got, err := f.other.Claim(f.ctx, &item.Claim{Group: "g", Duration: time.Hour, Wait: item.MaxWait})
		if err != nil {
			f.Error(err)
		}
		answered <- got
	}()
	return answered
}

func woken(f *fixture) {
	answered := f.waits()
	began := time.Now()
	f.add("a")
	if got := <-answered; got == nil || string(got.Data) != "a" || time.Since(began) > 10*time.Second {
		f.Errorf("answered with %+v after %s", got, time.Since(began))
	}
}

func wokenByTime(f *fixture) {
	f.update(f.one, &item.Update{Adds: []item.Add{{Group: "g", At: -300}}})
	began := time.Now()
	if got := <-f.waits(); got == nil || time.Since(began) > 10*time.Second {
		f.Errorf("answered with %+v after %s", got, time.Since(began))
	}
}

func repeated(f *fixture) {
	f.add("a", "b")
	first, err := f.one.Claim(f.ctx, &item.Claim{Key: "k", Group: "g", Duration: time.Hour})
	if err != nil {
		f.Fatal(err)
	}
	again, err := f.one.Claim(f.ctx, &item.Claim{Key: "k", Group: "g", Duration: time.Hour})
	if err != nil || again == nil || again.ID != first.ID {
		f.Errorf("repeated: %+v, %v; want %+v", again, err, first)
	}
	u := item.Update{Key: "u", Adds: []item.Add{{Group: "h"}}}
	made := f.update(f.one, &u)
	if got := f.update(f.one, &u); got[0].ID != made[0].ID {
		f.Errorf("repeated: %+v, want %+v", got, made)
	}
	u.Adds = append(u.Adds, u.Adds[0])
	if _, err := f.one.Update(f.ctx, &u); !errors.Is(err, taskstore.ErrOtherRequest) {
		f.Errorf("another request under the key: %v", err)
	}
	if all := f.group("h", item.Page{Owned: true}); len(all) != 1 {
		f.Errorf("there are %+v", all)
	}
}

func listed(f *fixture) {
	var want []int64
	for range 3 {
		u := &item.Update{}
		for range 400 {
			u.Adds = append(u.Adds, item.Add{Group: "g"})
		}
		for _, i := range f.update(f.one, u) {
			want = append(want, i.ID)
		}
	}
	f.update(f.one, &item.Update{Adds: []item.Add{{Group: "/ .. %2F"}, {Group: "ä"}, {Group: ".."}}})
	ids := func(all []item.Item) (ids []int64) {
		for _, i := range all {
			ids = append(ids, i.ID)
		}
		return ids
	}
	if got := ids(f.group("g", item.Page{})); !slices.Equal(got, want) {
		f.Errorf("%d tasks are listed, want %d by id", len(got), len(want))
	}
	if got := ids(f.group("g", item.Page{Limit: 1001})); !slices.Equal(got, want[:1001]) {
		f.Errorf("%d tasks are listed, want 1001", len(got))
	}
	for _, name := range []string{"/ .. %2F", "ä", ".."} {
		if got := f.group(name, item.Page{}); len(got) != 1 {
			f.Errorf("group %q has %+v", name, got)
		}
	}
	if got := f.group("unknown", item.Page{}); len(got) != 0 {
		f.Errorf("an unknown group has %+v", got)
	}
	names, err := f.one.Groups(f.ctx)
	if err != nil || !slices.Equal(names, []string{"..", "/ .. %2F", "g", "ä"}) {
		f.Errorf("groups %q, %v", names, err)
	}
}

func released(f *fixture) {
	f.add("a")
	got := f.claim(f.one, time.Hour)
	f.update(f.one, &item.Update{Changes: []item.Change{{ID: got.ID, Keep: true}}})
	if again := f.claim(f.other, time.Hour); again == nil || string(again.Data) != "a" {
		f.Errorf("claimed %+v", again)
	}
}

func dependsOnRemoved(f *fixture) {
	f.add("a")
	f.update(f.one, &item.Update{Depends: []int64{1}, Deletes: []int64{1}})
	_, err := f.one.Update(f.ctx, &item.Update{Depends: []int64{1}})
	f.wantProblems(err, 1)
}

func unowned(f *fixture) {
	f.add("a")
	f.update(f.other, &item.Update{Changes: []item.Change{{ID: 1, Data: []byte("b")}}})
}

func future(f *fixture) {
	f.update(f.one, &item.Update{Adds: []item.Add{{Group: "g", At: -3_600_000}}})
	if got := f.claim(f.other, time.Second); got != nil {
		f.Errorf("claimed %+v", got)
	}
}
