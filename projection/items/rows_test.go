package items_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/item"
	"taskledger/projection/items"
)

// sample is a state that has rows of every section.
func sample(t testing.TB) *shard {
	s := newShard()
	for _, u := range []*item.Update{keyed(1, "k", "a"), keyed(2, "l", ""), {Client: 1, Adds: []item.Add{{Group: "h", At: -5000}}}} {
		d, err := s.state.DecideUpdate("s", u, u.RequestID(), s.now)
		if err == nil {
			err = s.apply(&d, u.RequestID())
		}
		if err != nil {
			t.Fatal(err)
		}
		s.later(time.Second)
	}
	return s
}

// read restores a state, or says what is wrong with its rows.
func read(all [][]byte, entry uint64, now events.Millis) (*items.Stores, error) {
	s := &items.Stores{}
	for i, of := range items.Sections {
		r := wire.NewReader(all[i])
		for range r.Array() {
			if of.Read(s, r); r.Err() != nil {
				return nil, r.Err()
			}
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	return s, s.Restored(entry, now)
}

// row writes a row of uints, texts, bytes and times.
func row(values ...any) []byte {
	var w wire.Writer
	w.Array(len(values))
	for _, v := range values {
		switch v := v.(type) {
		case int:
			w.Uint(uint64(v))
		case string:
			w.Text(v)
		case events.Millis:
			w.Int(int64(v))
		case events.Payload:
			w.Bytes(v)
		}
	}
	return w.B
}

const (
	ofStores = iota
	ofGroups
	ofItems
	ofKeys
)

func TestRows_ThatContradictTheOthersAreRefused(t *testing.T) {
	data, at, digest := events.Bytes([]byte("x")), events.Millis(5), events.ItemRequestID
	// In each the first rows are sound: store 1 with group 2, which has item 1.
	sound := [][][]byte{{row(1, "s", 9, events.Millis(0), events.Millis(0))}, {row(1, 1, "g")}, {row(1, 1, 1, 1, 1, at, 7, 0, data)}, {row(1, 1, digest(7, "k", nil), 1, at)}}
	store, group, it, key := sound[0][0], sound[1][0], sound[2][0], sound[3][0]
	cases := map[string]struct {
		section int
		rows    [][]byte
		want    string
	}{
		"nothing but the sound rows":                      {ofStores, [][]byte{store}, ""},
		"a store twice":                                   {ofStores, [][]byte{store, row(2, "s", 9, events.Millis(0), events.Millis(0))}, "twice"},
		"a number of a store twice":                       {ofStores, [][]byte{store, row(1, "t", 9, events.Millis(0), events.Millis(0))}, "twice"},
		"a store without a name":                          {ofStores, [][]byte{store, row(2, "", 9, events.Millis(0), events.Millis(0))}, "want 1 to 64"},
		"a store that nothing made":                       {ofStores, [][]byte{store, row(2, "t", 0, events.Millis(0), events.Millis(0))}, "last id is 0"},
		"a store past the largest id":                     {ofStores, [][]byte{store, row(2, "t", events.MaxItemNumber+1, events.Millis(0), events.Millis(0))}, "last id"},
		"a store of an entry to come":                     {ofStores, [][]byte{store, row(1<<40, "t", 1, events.Millis(0), events.Millis(0))}, "after entry"},
		"a store that gave up a key after its last event": {ofStores, [][]byte{store, row(2, "t", 9, at, at+1)}, "given up"},
		"an item claimed more often than changed":         {ofItems, [][]byte{it, row(1, 2, 2, 1, 2, at, 7, 1, data)}, "1-th"},
		"a group of no store":                             {ofGroups, [][]byte{group, row(2, 5, "h")}, "no store"},
		"a group without a name":                          {ofGroups, [][]byte{group, row(2, 1, "")}, "name of 0 bytes"},
		"a group of a long name":                          {ofGroups, [][]byte{group, row(2, 1, strings.Repeat("g", events.MaxGroupBytes+1))}, "257 bytes"},
		"a group twice":                                   {ofGroups, [][]byte{group, row(2, 1, "g")}, "twice"},
		"a number of a group twice":                       {ofGroups, [][]byte{group, row(1, 1, "h")}, "twice"},
		"a group without items":                           {ofGroups, [][]byte{group, row(2, 1, "h")}, "without items"},
		"an item of no group":                             {ofItems, [][]byte{it, row(5, 2, 2, 1, 2, at, 7, 0, data)}, "no group"},
		"an item twice":                                   {ofItems, [][]byte{it, row(1, 1, 1, 1, 2, at, 7, 0, data)}, "twice"},
		"two items of an event":                           {ofItems, [][]byte{it, row(1, 2, 2, 1, 1, at, 7, 0, data)}, "same event"},
		"an item 0":                                       {ofItems, [][]byte{it, row(1, 0, 0, 1, 2, at, 7, 0, data)}, "item 0"},
		"an item past its store":                          {ofItems, [][]byte{it, row(1, 10, 10, 1, 2, at, 7, 0, data)}, "behind 9"},
		"an item before its first id":                     {ofItems, [][]byte{it, row(1, 2, 3, 2, 2, at, 7, 0, data)}, "of 3"},
		"an item changed without an id":                   {ofItems, [][]byte{it, row(1, 2, 2, 2, 2, at, 7, 0, data)}, "2-th"},
		"an item of an entry to come":                     {ofItems, [][]byte{it, row(1, 2, 2, 1, 1<<40, at, 7, 0, data)}, "after entry"},
		"an item of nobody":                               {ofItems, [][]byte{it, row(1, 2, 2, 1, 2, at, 0, 0, data)}, "of 0 until"},
		"an item past the year 9999":                      {ofItems, [][]byte{it, row(1, 2, 2, 1, 2, events.MaxItemTime+1, 7, 0, data)}, "until 253402300800000"},
		"an item before 1970":                             {ofItems, [][]byte{it, row(1, 2, 2, 1, 2, events.Millis(-1), 7, 0, data)}, "until -1"},
		"an item with data in JSON":                       {ofItems, [][]byte{it, row(1, 2, 2, 1, 2, at, 7, 0, events.JSON([]byte("1")))}, "in codec 1"},
		"an item without data":                            {ofItems, [][]byte{it, row(1, 2, 2, 1, 2, at, 7, 0, events.Payload(nil))}, "of 0 bytes"},
		"a key of no store":                               {ofKeys, [][]byte{key, row(2, 5, digest(7, "l", nil), 1, at)}, "no store"},
		"a key of no client":                              {ofKeys, [][]byte{key, row(2, 1, digest(0, "l", nil), 1, at)}, "no client"},
		"a key without a digest":                          {ofKeys, [][]byte{key, row(2, 1, "7/l", 1, at)}, "no client"},
		"a key twice":                                     {ofKeys, [][]byte{key, row(2, 1, digest(7, "k", []byte("b")), 1, at)}, "twice"},
		"keys in another order":                           {ofKeys, [][]byte{key, row(1, 1, digest(7, "l", nil), 1, at)}, "behind that of 1"},
		"a key of an entry to come":                       {ofKeys, [][]byte{key, row(1<<40, 1, digest(7, "l", nil), 1, at)}, "after entry"},
		"a row with too few values":                       {ofItems, [][]byte{row(1, 1)}, "array of 9"},
		"a row with too many values":                      {ofStores, [][]byte{row(1, "s", 9, events.Millis(0), events.Millis(0), 9)}, "array of 5"},
		"a row with another kind of one":                  {ofStores, [][]byte{row("s", "s", 9, events.Millis(0), events.Millis(0))}, "expected"},
	}
	for name, c := range cases {
		var all [][]byte
		for i := range sound {
			rows := sound[i]
			if i == c.section {
				rows = c.rows
			}
			var w wire.Writer
			w.Array(len(rows))
			w.B = append(w.B, slices.Concat(rows...)...)
			all = append(all, w.B)
		}
		s, err := read(all, 1, at)
		switch {
		case c.want == "" && (err != nil || s.Len() != 1):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzRows reads hostile rows: they are refused, or are a state that is written as it was read and goes on.
func FuzzRows(f *testing.F) {
	s := sample(f)
	all := rows(s.state)
	f.Add(all[ofStores], all[ofGroups], all[ofItems], all[ofKeys])
	f.Add(all[ofStores], []byte{0x90}, []byte{0x90}, all[ofKeys])
	f.Fuzz(func(t *testing.T, stores, groups, its, keys []byte) {
		for _, b := range [][]byte{stores, groups, its, keys} {
			if len(b) > 1<<12 || wire.Scan(b) != nil {
				return // a snapshot is scanned before it is read
			}
		}
		got, err := read([][]byte{stores, groups, its, keys}, s.entry, s.now)
		if err != nil {
			return
		}
		written := rows(got)
		again, err := read(written, s.entry, s.now)
		if err != nil || !slices.EqualFunc(rows(again), written, slices.Equal) || again.Len() != got.Len() || again.Bytes() != got.Bytes() {
			t.Fatalf("what was read is written otherwise: %v", err)
		}
		on := &shard{state: got, entry: s.entry + 1, now: s.now}
		for _, in := range []string{"s", "other"} {
			u := &item.Update{Client: 1, Adds: []item.Add{{Group: "g"}}}
			d, err := got.DecideUpdate(in, u, "", s.now)
			if _, refused := errors.AsType[*items.Refusal](err); refused {
				continue
			}
			if err := on.apply(&d, ""); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The original kept one task of a thousand in a snapshot.
func TestRows_OfAThousandItemsHaveEachOfThemAndLetThemBeChanged(t *testing.T) {
	const n = 1000
	s := newShard()
	u := &item.Update{Client: 1}
	for i := range n {
		u.Adds = append(u.Adds, item.Add{Group: fmt.Sprint("g", i%7), At: item.When(-int64(i % 3 * 1000)), Data: fmt.Append(nil, i)})
	}
	s.updated(t, "s", u)
	s.later(0)
	again := &shard{state: restored(t, rows(s.state), s.entry, s.now), entry: s.entry + 1, now: s.now}
	if again.text() != s.text() || again.state.Len() != n {
		t.Errorf("%d items are left of %d", again.state.Len(), n)
	}
	change := &item.Update{Client: 1}
	for id := range int64(n) {
		change.Changes = append(change.Changes, item.Change{ID: id + 1, Keep: true})
	}
	if first := again.updated(t, "s", change); first != n+1 || again.state.Len() != n {
		t.Errorf("changed, they begin with %d, and there are %d", first, again.state.Len())
	}
}
