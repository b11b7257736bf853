package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/internal/testcluster"
	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

// Clients of a store, as items name their owners.
const (
	ada = 1
	bob = 2
)

// caller is a node or a client.
type caller interface{ Stores() engine.Stores }

// putItems adds items with these data to a group, available now.
func putItems(t *testing.T, a caller, store, group string, data ...string) []item.Item {
	t.Helper()
	u := &item.Update{Client: ada}
	for _, d := range data {
		u.Adds = append(u.Adds, item.Add{Group: group, Data: []byte(d)})
	}
	return updateItems(t, a, store, u)
}

func updateItems(t *testing.T, a caller, store string, u *item.Update) []item.Item {
	t.Helper()
	made, err := a.Stores().Update(testcluster.Within(t), store, u)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func claimItem(t *testing.T, a caller, store string, q *item.Claim) *item.Item {
	t.Helper()
	it, err := a.Stores().Claim(testcluster.Within(t), store, q)
	if err != nil {
		t.Fatal(err)
	}
	return it
}

// wantConflict checks which fields and ids are refused.
func wantConflict(t *testing.T, err error, problems ...string) {
	t.Helper()
	conflict, is := errors.AsType[*item.ConflictError](err)
	if !is {
		t.Errorf("%v, want a conflict", err)
		return
	}
	var got []string
	for _, p := range conflict.Problems {
		got = append(got, fmt.Sprint(p.Field, " ", p.ID))
	}
	if !slices.Equal(got, problems) {
		t.Errorf("%v, want problems %q", err, problems)
	}
}

func TestItems_AreAddedChangedAndRemovedTogether(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil)
		client := c.StartClient("c", nil)
		made := putItems(t, client, "s", "g", "one", "two", "three")
		for i, want := range []string{"one", "two", "three"} {
			if it := made[i]; it.ID != int64(i+1) || it.Group != "g" || it.Owner != ada || string(it.Data) != want || it.At == 0 {
				t.Errorf("item %d is %+v, want %q", i, it, want)
			}
		}
		made = updateItems(t, client, "s", &item.Update{Client: bob, Depends: []int64{1}, Deletes: []int64{2},
			Changes: []item.Change{{ID: 3, Data: []byte("drei"), At: -60_000}, {ID: 1, Keep: true}}, Adds: []item.Add{{Group: "h", Data: []byte("four"), At: 1}}})
		want := []item.Item{{ID: 4, Group: "h", At: 1, Owner: bob, Data: []byte("four")}, {ID: 5, Group: "g", Owner: bob, Data: []byte("drei")}, {ID: 6, Group: "g", Owner: bob}}
		if made[1].At-made[2].At != 60_000 {
			t.Errorf("times %d and %d, want a minute between", made[1].At, made[2].At)
		}
		made[1].At, made[2].At = 0, 0
		if fmt.Sprint(made) != fmt.Sprint(want) {
			t.Errorf("made\n%v, want\n%v", made, want)
		}
		// The same through another process, by a proof.
		found, err := n.Stores().Items(testcluster.Within(t), "s", []int64{6, 2, 5, 1, 4}, true)
		if err != nil || found[1] != nil || found[3] != nil || found[0] == nil || string(found[0].Data) != "one" || found[2] == nil || string(found[2].Data) != "drei" || found[4] == nil {
			t.Errorf("found %v, %v", found, err)
		}
		for _, linear := range []bool{false, true} {
			groups, err := client.Stores().Groups(testcluster.Within(t), "s", linear)
			want := []item.Group{{Name: "g", Available: 1, Waiting: 1, Bytes: 7}, {Name: "h", Available: 1, Bytes: 4, Oldest: 1}}
			if len(groups) == 2 {
				want[0].Oldest = groups[0].Oldest
			}
			if err != nil || !slices.Equal(groups, want) || groups[0].Oldest == 0 {
				t.Errorf("groups %+v, %v, want %+v", groups, err, want)
			}
			free, more, err := client.Stores().Group(testcluster.Within(t), "s", item.Page{Group: "g", Linear: linear})
			if err != nil || more || len(free) != 1 || free[0].ID != 6 {
				t.Errorf("available %v, %t, %v", free, more, err)
			}
			all, more, err := client.Stores().Group(testcluster.Within(t), "s", item.Page{Group: "g", Owned: true, Limit: 1, Linear: linear})
			if err != nil || !more || len(all) != 1 || all[0].ID != 5 {
				t.Errorf("first page %v, %t, %v", all, more, err)
			}
			all, more, err = client.Stores().Group(testcluster.Within(t), "s", item.Page{Group: "g", Owned: true, After: 5, Linear: linear})
			if err != nil || more || len(all) != 1 || all[0].ID != 6 {
				t.Errorf("second page %v, %t, %v", all, more, err)
			}
		}
	})
}

func TestItems_UpdateThatIsNotAllowedChangesNothing(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil)
		putItems(t, n, "s", "g", "one", "two")
		it := claimItem(t, n, "s", &item.Claim{Client: ada, Group: "g", Duration: time.Hour})
		other := 3 - it.ID%3 // whichever was left
		for id := range int64(3) {
			if found, err := n.Stores().Items(testcluster.Within(t), "s", []int64{id + 1}, false); err == nil && found[0] != nil && found[0].ID != it.ID {
				other = found[0].ID
			}
		}
		_, err := n.Stores().Update(testcluster.Within(t), "s", &item.Update{Client: bob, Depends: []int64{77, other}, Deletes: []int64{it.ID, other},
			Changes: []item.Change{{ID: 88}}, Adds: []item.Add{{Group: "g"}}})
		wantConflict(t, err, "depends 77", fmt.Sprint("deletes ", it.ID), "updates 88")
		all, _, err := n.Stores().Group(testcluster.Within(t), "s", item.Page{Group: "g", Owned: true})
		if err != nil || len(all) != 2 {
			t.Errorf("%v, %v; want the two as they were", all, err)
		}
		for _, u := range []*item.Update{{Client: ada}, {Client: 0, Deletes: []int64{1}}, {Client: ada, Deletes: []int64{1, 1}}} {
			if _, err := n.Stores().Update(testcluster.Within(t), "s", u); !isInvalid(err) {
				t.Errorf("%+v: %v, want it refused by field", u, err)
			}
		}
	})
}

func isInvalid(err error) bool {
	_, invalid := errors.AsType[*store.InvalidError](err)
	_, large := errors.AsType[*task.LimitError](err)
	return invalid || large
}

// A late owner finds its item gone.
func TestItems_DeleteByWhoLostTheClaimIsRefused(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil)
		putItems(t, n, "s", "g", "one")
		late := claimItem(t, n, "s", &item.Claim{Client: ada, Group: "g", Duration: 20 * time.Millisecond})
		if late == nil || string(late.Data) != "one" {
			t.Fatalf("claimed %+v", late)
		}
		next := claimItem(t, n, "s", &item.Claim{Client: bob, Group: "g", Duration: time.Hour, Wait: time.Minute})
		if next == nil || next.ID <= late.ID || string(next.Data) != "one" || next.Owner != bob {
			t.Fatalf("claimed %+v after %+v fell due", next, late)
		}
		_, err := n.Stores().Update(testcluster.Within(t), "s", &item.Update{Client: ada, Deletes: []int64{late.ID}})
		wantConflict(t, err, fmt.Sprint("deletes ", late.ID))
		_, err = n.Stores().Update(testcluster.Within(t), "s", &item.Update{Client: ada, Deletes: []int64{next.ID}})
		wantConflict(t, err, fmt.Sprint("deletes ", next.ID))
		updateItems(t, n, "s", &item.Update{Client: bob, Deletes: []int64{next.ID}})
	})
}

// A key tells that it is the same request, whoever sends it by whichever process.
func TestItems_RepeatedKeyIsAnsweredAsBefore(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil)
		client := c.StartClient("c", nil)
		add := item.Update{Client: ada, Key: "add", Adds: []item.Add{{Group: "g", Data: []byte("one")}, {Group: "g", Data: []byte("two")}}}
		first := updateItems(t, n, "s", &add)
		again := updateItems(t, client, "s", &add)
		if fmt.Sprint(first) != fmt.Sprint(again) {
			t.Errorf("answered %v, before %v", again, first)
		}
		claim := item.Claim{Client: ada, Key: "claim", Group: "g", Duration: time.Hour}
		got := claimItem(t, client, "s", &claim)
		for _, a := range []caller{n, client} {
			if repeated := claimItem(t, a, "s", &claim); fmt.Sprint(*repeated) != fmt.Sprint(*got) {
				t.Errorf("claimed %+v, before %+v", repeated, got)
			}
		}
		add.Adds = add.Adds[:1]
		if _, err := n.Stores().Update(testcluster.Within(t), "s", &add); !errors.Is(err, task.ErrOtherRequest) {
			t.Errorf("another update with the key: %v", err)
		}
		claim.Group = "h"
		if _, err := n.Stores().Claim(testcluster.Within(t), "s", &claim); !errors.Is(err, task.ErrOtherRequest) {
			t.Errorf("another claim with the key: %v", err)
		}
		updateItems(t, n, "s", &item.Update{Client: ada, Deletes: []int64{got.ID}})
		claim.Group = "g"
		_, err := n.Stores().Claim(testcluster.Within(t), "s", &claim)
		wantConflict(t, err, fmt.Sprint("claim ", got.ID))
	})
}

func TestClaim_OfNothingIsNoErrorAndChecksWhatItDependsOn(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil)
		if it := claimItem(t, n, "s", &item.Claim{Client: ada, Group: "g", Duration: time.Second}); it != nil {
			t.Errorf("claimed %+v of nothing", it)
		}
		_, err := n.Stores().Claim(testcluster.Within(t), "s", &item.Claim{Client: ada, Group: "g", Duration: time.Second, Wait: time.Minute, Depends: []int64{7}})
		wantConflict(t, err, "depends 7")
		if it := claimItem(t, n, "s", &item.Claim{Client: ada, Group: "g", Duration: time.Second, Wait: 30 * time.Millisecond}); it != nil {
			t.Errorf("claimed %+v of nothing", it)
		}
	})
}

// park starts claims that wait, and returns what they come to. They wait at the owner's before it returns.
func park(t *testing.T, a caller, n int, q item.Claim) <-chan error {
	t.Helper()
	done := make(chan error, n)
	ctx := testcluster.Within(t)
	for range n {
		go func() {
			it, err := a.Stores().Claim(ctx, "s", &q)
			if it == nil && err == nil {
				err = errNothing
			}
			done <- err
		}()
	}
	select {
	case err := <-done:
		t.Fatalf("a claim that should wait has ended: %v", err)
	case <-time.After(quiet):
	}
	// The claims of one process reach the owner in turn: all were answered, and wait, once one that does not is.
	if it, err := a.Stores().Claim(ctx, "s", &item.Claim{Client: q.Client, Group: "none", Duration: q.Duration}); it != nil || err != nil {
		t.Fatalf("a claim of nothing got %+v, %v", it, err)
	}
	return done
}

var errNothing = errors.New("nothing came")

func wantDone(t *testing.T, what string, done <-chan error, n int, target error) {
	t.Helper()
	for range n {
		select {
		case err := <-done:
			if !errors.Is(err, target) {
				t.Errorf("%s: %v, want %v", what, err, target)
			}
		case <-time.After(soon):
			t.Fatalf("%s: it still waits", what)
		}
	}
}

func TestClaim_ThatWaitsIsWokenByWhatComes(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil)
		client := c.StartClient("c", nil)
		q := item.Claim{Client: ada, Group: "g", Duration: time.Hour, Wait: item.MaxWait}
		for _, a := range []caller{n, client} {
			done := park(t, a, 3, q)
			putItems(t, n, "s", "other", "x")
			putItems(t, n, "s", "g", "one", "two", "three")
			wantDone(t, "added", done, 3, nil)

			done = park(t, a, 1, q)
			updateItems(t, client, "s", &item.Update{Client: ada, Adds: []item.Add{{Group: "g", At: -200}}})
			wantDone(t, "fell due", done, 1, nil)

			done = park(t, a, 1, q)
			held := updateItems(t, client, "s", &item.Update{Client: bob, Adds: []item.Add{{Group: "g", At: -3_600_000}}})
			updateItems(t, client, "s", &item.Update{Client: bob, Changes: []item.Change{{ID: held[0].ID, Keep: true}}})
			wantDone(t, "released", done, 1, nil)
		}
	})
}

// Each item goes to one of those who wait in many processes, and none is left while somebody waits.
func TestClaim_EachItemGoesToOneWhoWaits(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		a, b := c.StartNode("a", nil), c.StartNode("b", nil)
		callers := []caller{a, b, c.StartClient("c", nil)}
		const each, items = 4, 60
		var mu sync.Mutex
		got := map[string]int{}
		var working sync.WaitGroup
		ctx, stop := context.WithCancel(testcluster.Within(t))
		defer stop()
		for i, from := range callers {
			for range each {
				working.Go(func() {
					for {
						it, err := from.Stores().Claim(ctx, "s", &item.Claim{Client: int64(i + 1), Group: "g", Duration: time.Hour, Wait: item.MaxWait})
						if ctx.Err() != nil {
							return
						}
						if err != nil || it == nil {
							t.Errorf("claimed %v, %v", it, err)
							return
						}
						mu.Lock()
						got[string(it.Data)]++
						if len(got) == items {
							stop()
						}
						mu.Unlock()
					}
				})
			}
		}
		for i := range items {
			putItems(t, a, "s", "g", fmt.Sprint(i))
		}
		working.Wait()
		for data, n := range got {
			if n != 1 {
				t.Errorf("item %s went to %d", data, n)
			}
		}
	})
}

func TestClaim_ThatWaitsLooksAtItsEndForWhatItDependsOn(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil)
		made := putItems(t, n, "s", "lock", "x")
		done := park(t, n, 1, item.Claim{Client: bob, Group: "g", Duration: time.Hour, Wait: quiet + 500*time.Millisecond, Depends: []int64{made[0].ID}})
		updateItems(t, n, "s", &item.Update{Client: ada, Deletes: []int64{made[0].ID}})
		wantConflict(t, <-done, fmt.Sprint("depends ", made[0].ID))
	})
}

func TestClaim_ThatWaitsGoesOnWithTheNextOwner(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		first := c.StartNode("a", nil)
		putItems(t, first, "s", "g", "one")
		held := claimItem(t, first, "s", &item.Claim{Client: bob, Group: "g", Duration: time.Hour})
		client := c.StartClient("c", nil)
		done := park(t, client, 2, item.Claim{Client: ada, Group: "g", Duration: time.Hour, Wait: item.MaxWait})
		first.Kill()
		next := c.StartNode("b", nil)
		if found, err := next.Stores().Items(testcluster.Within(t), "s", []int64{held.ID}, true); err != nil || found[0] == nil || string(found[0].Data) != "one" || found[0].Owner != bob {
			t.Errorf("the next owner has %+v, %v", found, err)
		}
		if made := putItems(t, next, "s", "g", "two", "three"); made[0].ID != held.ID+1 {
			t.Errorf("ids go on with %d after %d", made[0].ID, held.ID)
		}
		wantDone(t, "with another owner", done, 2, nil)
	})
}

func TestClaim_ThatWaitsIsAnsweredWhenItsNodeDrains(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		c.StartNode("a", nil)
		b := c.StartNode("b", nil)
		done := park(t, b, 3, item.Claim{Client: ada, Group: "g", Duration: time.Hour, Wait: item.MaxWait})
		b.Stop()
		wantDone(t, "drained", done, 3, errNothing)

		client := c.StartClient("c", nil)
		done = park(t, client, 1, item.Claim{Client: ada, Group: "g", Duration: time.Hour, Wait: item.MaxWait})
		client.Stop()
		wantDone(t, "closed", done, 1, task.ErrClosed)
	})
}

func TestItems_LargeAnswersComeInPages(t *testing.T) {
	withAndWithoutNATS(t, func(t *testing.T, c *testcluster.Cluster) {
		n := c.StartNode("a", nil)
		large := make([]byte, item.MaxBytes-item.ItemBytes-1)
		var ids []int64
		for range 5 {
			ids = append(ids, updateItems(t, n, "s", &item.Update{Client: ada, Adds: []item.Add{{Group: "g", Data: large}}})[0].ID)
		}
		found, err := n.Stores().Items(testcluster.Within(t), "s", ids, false)
		if err != nil || slices.ContainsFunc(found, func(i *item.Item) bool { return i == nil || len(i.Data) != len(large) }) {
			t.Errorf("%d found, %v", len(found), err)
		}
		var paged int
		for after, more := int64(0), true; more; {
			var page []item.Item
			if page, more, err = n.Stores().Group(testcluster.Within(t), "s", item.Page{Group: "g", After: after}); err != nil || len(page) == 0 {
				t.Fatalf("page after %d: %v", after, err)
			}
			paged += len(page)
			after = page[len(page)-1].ID
		}
		if paged != 5 {
			t.Errorf("pages have %d items", paged)
		}
		for range 5 {
			if it := claimItem(t, n, "s", &item.Claim{Client: ada, Group: "g", Duration: time.Hour}); it == nil || len(it.Data) != len(large) {
				t.Fatalf("claimed %v", it)
			}
		}
	})
}

// Hints are lost with NATS, and nothing else.
func TestClaim_ThatWaitsIsWokenWhileNATSIsAwayAndWhenItIsBack(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	n := c.StartNode("a", nil)
	client := c.StartClient("c", nil)
	q := item.Claim{Client: ada, Group: "g", Duration: time.Hour, Wait: item.MaxWait}
	done := park(t, client, 2, q)
	c.NATS.Stop()
	putItems(t, n, "s", "g", "one")
	wantDone(t, "while it is away", done, 1, nil)
	c.NATS.Start()
	putItems(t, n, "s", "g", "two")
	wantDone(t, "when it is back", done, 1, nil)
}

// Without the hint a claim that waits at another process is woken when that registers again, which it does every
// second: each but the first would take as long, as it begins when the one before it was woken.
func TestClaim_ThatWaitsElsewhereIsWokenByTheHintAndNotByTheNextRegistration(t *testing.T) {
	t.Parallel()
	c := testcluster.New(t, testcluster.Options{})
	n := c.StartNode("a", nil)
	client := c.StartClient("c", nil)
	const tries, want, atOnce = 10, 3, 500 * time.Millisecond // processors may be busy
	soonWoken := 0
	for range tries {
		done := park(t, client, 1, item.Claim{Client: ada, Group: "g", Duration: time.Hour, Wait: item.MaxWait})
		began := time.Now()
		putItems(t, n, "s", "g", "x")
		wantDone(t, "woken", done, 1, nil)
		if time.Since(began) < atOnce {
			soonWoken++
		}
	}
	if soonWoken < want {
		t.Errorf("%d of %d claims were answered within %s of the add, want %d", soonWoken, tries, atOnce, want)
	}
}
