package items_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/item"
	"taskledger/projection/items"
)

const store = "crawl"

func (s *shard) update(t *testing.T, u *item.Update) items.Decision {
	t.Helper()
	if err := u.Validate(); err != nil {
		t.Fatal(err)
	}
	d, err := s.state.DecideUpdate(store, u, u.RequestID(), s.now)
	if err == nil {
		err = s.apply(&d, u.RequestID())
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (s *shard) claim(t *testing.T, client int64, random uint64, depends ...int64) items.Decision {
	t.Helper()
	c := &item.Claim{Client: client, Group: "g", Duration: time.Minute, Depends: depends}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	d, err := s.state.DecideClaim(store, c, "", random, s.now)
	if err == nil {
		err = s.apply(&d, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func adds(n int) (all []item.Add) {
	for range n {
		all = append(all, item.Add{Group: "g"})
	}
	return all
}

func TestUpdate_IDsGrowAndAreNeverUsedAgainAlsoAfterASnapshot(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: adds(3)})
	s.update(t, &item.Update{Client: 1, Deletes: []int64{3, 1, 2}})
	s.state = restored(t, rows(s.state), s.entry, s.now)
	if d := s.update(t, &item.Update{Client: 1, Adds: adds(1)}); d.First != 4 {
		t.Errorf("the next id is %d, want 4", d.First)
	}
}

func TestUpdate_AddsGetTheirIDsBeforeUpdatesInTheOrderOfTheRequest(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: adds(2)})
	d := s.update(t, &item.Update{Client: 1, Changes: []item.Change{{ID: 2}, {ID: 1}}, Adds: adds(2)})
	var ids []uint64
	for _, ev := range d.Events {
		switch b := ev.Body.(type) {
		case *events.ItemAdded:
			ids = append(ids, b.ID)
		case *events.ItemReplaced:
			ids = append(ids, b.From*100+b.To)
		}
	}
	if want := []uint64{3, 4, 205, 106}; d.First != 3 || !slices.Equal(ids, want) {
		t.Errorf("ids %v from %d, want %v from 3", ids, d.First, want)
	}
}

func TestUpdate_TellsAllProblemsInOrderAndAppliesNothing(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: []item.Add{{Group: "g"}, {Group: "g", At: -60_000}, {Group: "h"}}})
	before := rows(s.state)
	d := s.update(t, &item.Update{Client: 2, Depends: []int64{9, 1}, Deletes: []int64{2, 8}, Changes: []item.Change{{ID: 3, Group: "g"}, {ID: 7}},
		Adds: []item.Add{{Group: "g"}}})
	var got []string
	for _, p := range d.Problems {
		got = append(got, p.String())
	}
	want := []string{"depends: task 9: it is not there", "deletes: task 2: it is held by 1 for 60000 ms more", "deletes: task 8: it is not there",
		`updates: task 3: it is of group "h", not "g"`, "updates: task 7: it is not there"}
	if !slices.Equal(got, want) {
		t.Errorf("problems\n%q\nwant\n%q", got, want)
	}
	if len(d.Events) > 0 || !slices.EqualFunc(before, rows(s.state), slices.Equal) {
		t.Error("something was applied")
	}
}

func TestUpdate_DependsMayNameWhatTheUpdateRemoves(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: adds(2)})
	if d := s.update(t, &item.Update{Client: 1, Depends: []int64{1, 2}, Deletes: []int64{1}, Changes: []item.Change{{ID: 2}}}); len(d.Problems) > 0 {
		t.Errorf("problems %v", d.Problems)
	}
}

func TestUpdate_DependsAloneIsACheckWithoutAnEvent(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: adds(1)})
	d, missing := s.update(t, &item.Update{Client: 1, Key: "k", Depends: []int64{1}}), s.update(t, &item.Update{Client: 1, Depends: []int64{2}})
	if len(d.Problems) > 0 || len(missing.Problems) != 1 || len(d.Events)+len(missing.Events) > 0 {
		t.Errorf("%+v and %+v", d, missing)
	}
}

func TestUpdate_OfALateOwnerIsRefusedOnceAnotherHasTheItem(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: adds(1)})
	first := s.claim(t, 7, 0)
	s.later(2 * time.Minute)
	second := s.claim(t, 8, 0)
	if d := s.update(t, &item.Update{Client: 7, Deletes: []int64{int64(first.First)}}); len(d.Problems) != 1 {
		t.Errorf("by its old id: %+v", d)
	}
	if d := s.update(t, &item.Update{Client: 7, Deletes: []int64{int64(second.First)}}); len(d.Problems) != 1 {
		t.Errorf("by its new id: %+v", d)
	}
	if d := s.update(t, &item.Update{Client: 8, Deletes: []int64{int64(second.First)}}); len(d.Problems) > 0 {
		t.Errorf("by its owner: %v", d.Problems)
	}
}

func TestUpdate_OfALateOwnerPassesWhileNobodyElseHasTheItem(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: adds(1)})
	d := s.claim(t, 7, 0)
	s.later(2 * time.Minute)
	if d := s.update(t, &item.Update{Client: 7, Deletes: []int64{int64(d.First)}}); len(d.Problems) > 0 {
		t.Error(d.Problems)
	}
}

func TestUpdate_OfEqualDataIsStoredAsUnchanged(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: []item.Add{{Group: "g", Data: []byte("same")}}})
	d := s.update(t, &item.Update{Client: 1, Changes: []item.Change{{ID: 1, Data: []byte("same")}}})
	if b := d.Events[0].Body.(*events.ItemReplaced); b.Data != nil {
		t.Errorf("%d bytes are stored again", len(b.Data))
	}
	d = s.update(t, &item.Update{Client: 1, Changes: []item.Change{{ID: 2}}})
	if b := d.Events[0].Body.(*events.ItemReplaced); b.Data == nil || len(s.state.Item(store, 3).Data) != 1 {
		t.Error("data that are left out are not empty")
	}
}

func TestClaim_ChecksDependsBeforeItLooksAtTheGroup(t *testing.T) {
	s := newShard()
	if d := s.claim(t, 1, 0, 5); len(d.Problems) != 1 || d.Problems[0].Field != "depends" {
		t.Errorf("of an empty group: %+v", d)
	}
}

func TestClaim_OfAnEmptyGroupIsNoError(t *testing.T) {
	if d := newShard().claim(t, 1, 0); len(d.Problems)+len(d.Events)+len(d.Changed) > 0 {
		t.Errorf("%+v", d)
	}
}

func TestClaim_ChoosesAmongTheOldest64Alike(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: adds(items.Head + 10)})
	chosen := map[uint64]int{}
	for random := range uint64(10 * items.Head) {
		d, err := s.state.DecideClaim(store, &item.Claim{Client: 2, Group: "g", Duration: time.Second}, "", random, s.now)
		if err != nil {
			t.Fatal(err)
		}
		chosen[d.Changed[0].ID]++
	}
	for id := uint64(1); id <= items.Head+10; id++ {
		if want := map[bool]int{true: 10}[id <= items.Head]; chosen[id] != want {
			t.Errorf("item %d was chosen %d times, want %d", id, chosen[id], want)
		}
	}
}

func TestKey_ARepeatedClaimIsAnsweredWithTheSameItem(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: adds(2)})
	c := &item.Claim{Client: 7, Key: "k", Group: "g", Duration: time.Minute}
	first, err := s.state.DecideClaim(store, c, c.RequestID(), 0, s.now)
	if err == nil {
		err = s.apply(&first, c.RequestID())
	}
	if err != nil {
		t.Fatal(err)
	}
	s.later(time.Second)
	if again, err := s.state.DecideClaim(store, c, c.RequestID(), 1, s.now); err != nil || !again.Repeated || again.First != first.First || len(again.Events) > 0 {
		t.Errorf("repeated: %+v, %v; want id %d", again, err, first.First)
	}
	other := &item.Claim{Client: 7, Key: "k", Group: "h", Duration: time.Minute}
	if refused := (*items.Refusal)(nil); !errors.As(errOf(s.state.DecideClaim(store, other, other.RequestID(), 0, s.now)), &refused) || !refused.OtherRequest {
		t.Error("another claim under the key passes")
	}
	elsewhere := &item.Claim{Client: 8, Key: "k", Group: "h", Duration: time.Minute}
	if _, err := s.state.DecideClaim(store, elsewhere, elsewhere.RequestID(), 0, s.now); err != nil {
		t.Errorf("another client's key counts: %v", err)
	}
}

func errOf(_ items.Decision, err error) error { return err }

func TestKey_TheLast64OfAClientCountForAnHour(t *testing.T) {
	s := newShard()
	for n := range items.KeysPerClient + 1 {
		s.update(t, &item.Update{Client: 7, Key: fmt.Sprint(n), Adds: adds(1)})
	}
	repeated := func(n int) bool {
		u := &item.Update{Client: 7, Key: fmt.Sprint(n), Adds: adds(1)}
		d, err := s.state.DecideUpdate(store, u, u.RequestID(), s.now)
		if err != nil {
			t.Fatal(err)
		}
		return d.Repeated
	}
	if repeated(0) || !repeated(1) || !repeated(items.KeysPerClient) {
		t.Errorf("key 0 counts %t, 1 %t, the last %t", repeated(0), repeated(1), repeated(items.KeysPerClient))
	}
	s.later(time.Hour)
	if !repeated(1) {
		t.Error("after an hour a key is forgotten")
	}
	s.later(time.Millisecond)
	if repeated(1) {
		t.Error("after more than an hour a key counts")
	}
}

func TestKey_FailuresAreNotKept(t *testing.T) {
	s := newShard()
	if d := s.update(t, &item.Update{Client: 1, Key: "k", Depends: []int64{1}, Adds: adds(1)}); len(d.Problems) != 1 {
		t.Fatalf("%+v", d)
	}
	s.update(t, &item.Update{Client: 1, Adds: adds(1)})
	if d := s.update(t, &item.Update{Client: 1, Key: "k", Depends: []int64{1}, Adds: adds(1)}); d.Repeated || len(d.Problems) > 0 {
		t.Errorf("%+v", d)
	}
}

func TestRecovered_KeepsIDsFromBeingUsedTwice(t *testing.T) {
	s := newShard()
	s.update(t, &item.Update{Client: 1, Adds: adds(1)})
	s.state.Recovered()
	if d := s.update(t, &item.Update{Client: 1, Adds: adds(1)}); d.First < 1<<32 {
		t.Errorf("the next id is %d: the end of the journal that was lost may have used it", d.First)
	}
}
