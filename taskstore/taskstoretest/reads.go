package taskstoretest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"taskledger/internal/testkit"
	"taskledger/item"
	"taskledger/taskstore"
)

// reads are the tests of what is read, and of data and names.
var reads = map[string]func(f *fixture){
	"Read/GroupsAreThoseThatHaveItemsSorted": func(f *fixture) {
		f.add("b", "1")
		f.add("a", "2")
		f.add("c", "3")
		f.mustClaim(f.s, "c", time.Hour)
		f.update(f.s, item.Update{Deletes: []int64{1}})
		groups, err := f.s.Linear().Groups(f.Context())
		if err != nil || !slices.Equal(groups, []string{"a", "c"}) {
			f.Errorf("groups %q, %v", groups, err)
		}
	},

	"Read/StatsCountTheItemsOfEveryGroup": func(f *fixture) {
		f.add("a", "1", "22", "333")
		f.update(f.s, item.Update{Adds: []item.Add{{Group: "a", At: after(time.Hour)}, {Group: "b", At: after(time.Hour)}}})
		f.mustClaim(f.s, "a", time.Hour)
		groups, err := f.s.Linear().Stats(f.Context())
		if err != nil || len(groups) != 2 {
			f.Fatalf("%+v, %v", groups, err)
		}
		a := groups[0]
		if a.Oldest == 0 {
			f.Errorf("%+v: two are available, and not since when", a)
		}
		a.Oldest = 0
		if want := (item.Group{Name: "a", Available: 2, Waiting: 1, Claimed: 1, Bytes: 6}); a != want {
			f.Errorf("%+v, want %+v", a, want)
		}
		if want := (item.Group{Name: "b", Waiting: 1}); groups[1] != want {
			f.Errorf("%+v, want %+v", groups[1], want)
		}
	},

	"Read/AnUnusedStoreHasNoGroups": func(f *fixture) {
		names, err := f.s.Groups(f.Context())
		if err != nil || names == nil || len(names) > 0 {
			f.Errorf("groups %#v, %v, want none that are there", names, err)
		}
		if all, err := f.s.Stats(f.Context()); err != nil || all == nil || len(all) > 0 {
			f.Errorf("stats %#v, %v, want none that are there", all, err)
		}
	},

	"Read/AGroupIsListedByIdWithALimitAndWithWhatIsOwnedIfAsked": func(f *fixture) {
		f.add("g", "a", "b", "c", "d")
		f.update(f.s, item.Update{Changes: []item.Change{{ID: 2, At: after(time.Hour)}}}) // 5
		for _, c := range []struct {
			l    taskstore.List
			want []int64
		}{
			{taskstore.List{}, []int64{1, 3, 4}},
			{taskstore.List{Limit: 2}, []int64{1, 3}},
			{taskstore.List{Owned: true}, []int64{1, 3, 4, 5}},
			{taskstore.List{Owned: true, Limit: 4}, []int64{1, 3, 4, 5}},
			{taskstore.List{Owned: true, Limit: 1_000_000}, []int64{1, 3, 4, 5}},
		} {
			if got := ids(f.list("g", c.l)); !slices.Equal(got, c.want) {
				f.Errorf("%+v: got %v, want %v", c.l, got, c.want)
			}
		}
		for _, err := range f.s.Group(f.Context(), "g", taskstore.List{Limit: -1}) {
			if !invalid(err) {
				f.Errorf("a negative limit: %v", err)
			}
		}
	},

	"Read/AGroupOfManyPagesIsListedWholeOnce": func(f *fixture) {
		const n = 2_500
		for range n / 500 {
			var u item.Update
			for range 500 {
				u.Adds = append(u.Adds, item.Add{Group: "g", Data: bytes.Repeat([]byte("x"), 300)})
			}
			f.update(f.s, u)
		}
		for _, l := range []taskstore.List{{}, {Limit: 1_234}} {
			got := ids(f.list("g", l))
			want := n
			if l.Limit > 0 {
				want = l.Limit
			}
			if len(got) != want || got[0] != 1 || got[len(got)-1] != int64(want) || !slices.IsSorted(got) {
				f.Errorf("%+v: got %d items", l, len(got))
			}
		}
	},

	"Read/WhoStopsEarlyGetsNoMore": func(f *fixture) {
		f.add("g", "a", "b")
		n := 0
		for range f.s.Group(f.Context(), "g", taskstore.List{}) {
			n++
			break
		}
		if n != 1 {
			f.Errorf("%d items", n)
		}
	},

	"Read/DataOfAnyBytesComeBackAsTheyWere": func(f *fixture) {
		random := testkit.Rand(f.T)
		data := [][]byte{nil, {0}, []byte("<&>\u2028\u2029\x7f\"\\/"), []byte("\xff\xfe"), []byte("\xed\xa0\x80"), []byte("\xef\xbf\xbd"), []byte("null"), []byte("é𝄞")}
		for range 40 {
			d := make([]byte, random.IntN(300))
			for i := range d {
				if d[i] = byte(random.Uint32()); random.IntN(2) == 0 {
					d[i] &= 0x7f
				}
			}
			data = append(data, d)
		}
		var u item.Update
		for _, d := range data {
			u.Adds = append(u.Adds, item.Add{Group: "g", Data: d})
		}
		made := f.update(f.s, u)
		f.same("made", made, data)
		f.same("listed", f.list("g", taskstore.List{}), data)
		u = item.Update{}
		for i, it := range made {
			u.Changes = append(u.Changes, item.Change{ID: it.ID, Group: it.Group, At: item.When(it.At), Data: data[len(data)-1-i]})
		}
		slices.Reverse(data)
		f.same("changed", f.update(f.s, u), data)
		f.same("listed after changes", f.list("g", taskstore.List{}), data)
		it := f.mustClaim(f.s, "g", time.Hour)
		if !slices.ContainsFunc(data, func(d []byte) bool { return bytes.Equal(d, it.Data) }) {
			f.Errorf("claimed %q", it.Data)
		}
	},

	"Read/GroupsOfAnyNameAreKeptApart": func(f *fixture) {
		names := []string{".", "..", "/", "a/b", "a%2Fb", "a b", "a+b", "?", "#", "é", "\x00", "\n", "%", strings.Repeat("x", 256), "~", "a,b", "reduceword <the>", "//", "g/"}
		for _, name := range names {
			f.add(name, "of "+name)
		}
		for _, name := range names {
			if got := f.list(name, taskstore.List{}); len(got) != 1 || string(got[0].Data) != "of "+name || got[0].Group != name {
				f.Errorf("group %q has %+v", name, got)
			}
			if it := f.mustClaim(f.s, name, time.Hour); string(it.Data) != "of "+name {
				f.Errorf("group %q: claimed %+v", name, it)
			}
		}
		groups, err := f.s.Linear().Groups(f.Context())
		if want := slices.Sorted(slices.Values(names)); err != nil || !slices.Equal(groups, want) {
			f.Errorf("groups %q, %v, want %q", groups, err, want)
		}
	},

	"Read/IdsThatThereCannotBeAreRefusedByField": func(f *fixture) {
		for _, id := range []int64{0, -1, 1<<53 + 1} {
			_, err := f.s.Tasks(f.Context(), 1, id)
			if bad, is := errors.AsType[*taskstore.InvalidError](err); !is || bad.Field != "ids[1]" {
				f.Errorf("id %d: %v, want a refusal of ids[1]", id, err)
			}
		}
		if it, err := f.s.Task(f.Context(), 1<<53); it != nil || err != nil {
			f.Errorf("the largest id: %+v, %v", it, err)
		}
	},

	"Read/StoresAreKeptApart": func(f *fixture) {
		f.add("g", "a")
		other, err := taskstore.Open(f.subject.Backend, f.name+".2", taskstore.Options{Client: 1})
		if err != nil {
			f.Fatal(err)
		}
		if it, err := other.Task(f.Context(), 1); it != nil || err != nil {
			f.Errorf("got %+v, %v", it, err)
		}
		if made := f.update(other, item.Update{Adds: []item.Add{{Group: "g"}}}); made[0].ID != 1 {
			f.Errorf("ids of the second store begin with %d", made[0].ID)
		}
	},

	"Read/ManyIdsAreAnsweredInTheOrderAsked": func(f *fixture) {
		f.add("g", "a", "b", "c")
		asked := make([]int64, item.MaxIDs)
		for i := range asked {
			asked[i] = int64(i%5) + 1
		}
		found, err := f.s.Tasks(f.Context(), asked...)
		if err != nil {
			f.Fatal(err)
		}
		for i, it := range found {
			if want := asked[i]; (it == nil) != (want > 3) || it != nil && it.ID != want {
				f.Fatalf("asked for %d, got %+v", want, it)
			}
		}
	},
}

func (f *fixture) same(what string, got []item.Item, want [][]byte) {
	f.Helper()
	if len(got) != len(want) {
		f.Fatalf("%s: %d items, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !bytes.Equal(got[i].Data, want[i]) {
			f.Errorf("%s: got %q, want %q", what, got[i].Data, want[i])
		}
	}
}
