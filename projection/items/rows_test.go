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

// written is the rows of each section as they are stored.
func written(all [][][]any) [][]byte {
	var sections [][]byte
	for _, rows := range all {
		var w wire.Writer
		w.Array(len(rows))
		for _, values := range rows {
			w.B = append(w.B, row(values...)...)
		}
		sections = append(sections, w.B)
	}
	return sections
}

// soundRows are two of each section, of a state that entry 1 and a time of 5 ms made.
func soundRows() [][][]any {
	data, at, none := events.Bytes([]byte("x")), events.Millis(5), events.Millis(0)
	return [][][]any{
		ofStores: {{1, "s", 9, none, none}, {2, "t", 9, none, none}},
		ofGroups: {{1, 1, "g"}, {2, 1, "h"}},
		ofItems:  {{1, 3, 1, 2, 1, at, 7, 0, data}, {2, 4, 2, 2, 2, at, 7, 1, data}},
		ofKeys: {
			{1, 1, events.ItemRequestID(7, "k", nil), 1, at},
			{2, 1, events.ItemRequestID(7, "l", nil), 1, at},
		},
	}
}

// The second row of a section has one other value in each case, so nothing but what the case names can refuse it.
func TestRows_ThatContradictTheOthersAreRefused(t *testing.T) {
	request := events.ItemRequestID
	cases := map[string]struct {
		section, value int
		is             any
		want           string
	}{
		"a store twice":                       {ofStores, 1, "s", "store s, or its number 2, is there twice"},
		"a number of a store twice":           {ofStores, 0, 1, "store t, or its number 1, is there twice"},
		"a store without a name":              {ofStores, 1, "", "want 1 to 64"},
		"a store that nothing made":           {ofStores, 2, 0, "last id is 0"},
		"a store past the largest id":         {ofStores, 2, events.MaxItemNumber + 1, "last id is 9007199254740993"},
		"a store of an entry to come":         {ofStores, 0, 1 << 40, "a store of event"},
		"a store that gave up a key later":    {ofStores, 4, events.Millis(1), "given up a key of 1 and had its last event at 0"},
		"a store that gave up one in 1969":    {ofStores, 4, events.Millis(-1), "given up a key of -1"},
		"a store with too many values":        {ofStores, 5, 9, "values expected, found"},
		"a store whose number is a text":      {ofStores, 0, "s", "number expected"},
		"a group of no store":                 {ofGroups, 1, 5, "in no store"},
		"a group without a name":              {ofGroups, 2, "", "name of 0 bytes"},
		"a group of a long name":              {ofGroups, 2, strings.Repeat("g", events.MaxGroupBytes+1), "257 bytes"},
		"a group twice":                       {ofGroups, 2, "g", "group 2 is there twice"},
		"a number of a group twice":           {ofGroups, 0, 1, "group 1 is there twice"},
		"a group with too many values":        {ofGroups, 3, 9, "values expected, found"},
		"a group without items":               {ofItems, 0, 1, "a group without items"},
		"an item of no group":                 {ofItems, 0, 5, "item 4 of no group"},
		"an item twice":                       {ofItems, 1, 3, "item 3 of store s is there twice"},
		"two items of an event":               {ofItems, 4, 1, "two items of the same event"},
		"an item past its store":              {ofItems, 1, 10, "item 10 of store s, the 2-th of 2, behind 9"},
		"an item of no lineage":               {ofItems, 2, 0, "the 2-th of 0"},
		"an item before its first id":         {ofItems, 2, 5, "item 4 of store s, the 2-th of 5"},
		"an item changed without an id":       {ofItems, 2, 4, "item 4 of store s, the 2-th of 4"},
		"an id that nothing changed":          {ofItems, 3, 1, "item 4 of store s, the 1-th of 2"},
		"an item that nothing made":           {ofItems, 3, 0, "claimed 1 times in 0 changes"},
		"an item claimed more than changed":   {ofItems, 7, 2, "claimed 2 times in 2 changes"},
		"an item of an entry to come":         {ofItems, 4, 1 << 40, "an item of event"},
		"an item of nobody":                   {ofItems, 6, 0, "item 4 of 0 until 5"},
		"an item of an owner too large":       {ofItems, 6, events.MaxItemNumber + 1, "item 4 of 9007199254740993 until 5"},
		"an item past the year 9999":          {ofItems, 5, events.MaxItemTime + 1, "until 253402300800000"},
		"an item before 1970":                 {ofItems, 5, events.Millis(-1), "until -1"},
		"an item with data in JSON":           {ofItems, 8, events.JSON([]byte("1")), "in codec 1"},
		"an item without data":                {ofItems, 8, events.Payload(nil), "of 0 bytes"},
		"an item with too much data":          {ofItems, 8, events.Bytes(make([]byte, events.MaxPayloadBytes+1)), "bytes in codec 2"},
		"an item with too many values":        {ofItems, 9, 9, "values expected, found"},
		"a key of no store":                   {ofKeys, 1, 5, "of no store"},
		"a key of no client":                  {ofKeys, 2, request(0, "l", nil), "no client"},
		"a key of a client too large":         {ofKeys, 2, request(events.MaxItemNumber+1, "l", nil), "no client"},
		"a key without a digest":              {ofKeys, 2, "7/l", "no client"},
		"a key of a long name":                {ofKeys, 2, request(7, strings.Repeat("l", events.MaxNameBytes), nil), "no client"},
		"a key twice":                         {ofKeys, 2, request(7, "k", []byte("b")), "is there twice"},
		"keys in another order":               {ofKeys, 0, 1, "of event 1 behind that of 1"},
		"a key of an entry to come":           {ofKeys, 0, 1 << 40, "an item of event"},
		"a key whose number of entry is none": {ofKeys, 0, "1", "number expected"},
		"a key with too many values":          {ofKeys, 5, 9, "values expected, found"},
	}
	for name, c := range cases {
		all := soundRows()
		if second := &all[c.section][1]; c.value == len(*second) {
			*second = append(*second, c.is)
		} else {
			(*second)[c.value] = c.is
		}
		if _, err := read(written(all), 1, 5); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if s, err := read(written(soundRows()), 1, 5); err != nil || s.Len() != 2 {
		t.Errorf("without any such value: %v", err)
	}
	to := soundRows()
	to[ofGroups][1][0], to[ofItems][1][0] = 1<<40, 1<<40
	if _, err := read(written(to), 1, 5); err == nil || !strings.Contains(err.Error(), "a group of event") {
		t.Errorf("a group of an entry to come, and its item: %v", err)
	}
	for section := range items.Sections {
		all := soundRows()
		second := &all[section][1]
		*second = (*second)[:len(*second)-1]
		if _, err := read(written(all), 1, 5); err == nil || !strings.Contains(err.Error(), "values expected, found") {
			t.Errorf("a row of %s with too few values: %v", items.Sections[section].Name, err)
		}
	}
}

// A shard holds no more than its limits say, whoever wrote the snapshot.
func TestRows_BeyondTheLimitsAreRefused(t *testing.T) {
	none := events.Millis(0)
	for name, c := range map[string]struct {
		most int
		rows func(all [][][]any, n int)
		want string
	}{
		"stores": {items.MaxStores, func(all [][][]any, n int) {
			all[ofStores] = append(all[ofStores], []any{n + 1, fmt.Sprint("s", n), 9, none, none})
		}, "behind 10000 others"},
		"groups": {items.MaxGroups, func(all [][][]any, n int) {
			all[ofGroups] = append(all[ofGroups], []any{n + 1, 1, fmt.Sprint("g", n)})
			all[ofItems] = append(all[ofItems], []any{n + 1, n + 1, n + 1, 1, n + 1, none, 7, 0, events.Bytes(nil)})
		}, "or too many"},
		"keys of a client": {items.KeysPerClient, func(all [][][]any, n int) {
			all[ofKeys] = append(all[ofKeys], []any{n + 1, 1, events.ItemRequestID(7, fmt.Sprint(n), nil), 1, none})
		}, "one of too many"},
		"keys": {2 * items.MaxKeys, func(all [][][]any, n int) {
			client := uint64(n/items.KeysPerClient + 1)
			all[ofKeys] = append(all[ofKeys], []any{n + 1, 1, events.ItemRequestID(client, fmt.Sprint(n), nil), 1, none})
		}, "of event 100001 behind that of 100000"},
	} {
		all := make([][][]any, len(items.Sections))
		if name != "stores" {
			all[ofStores] = [][]any{{1, "s", events.MaxItemNumber, none, none}}
		}
		for n := range c.most {
			c.rows(all, n)
		}
		if _, err := read(written(all), 1, 0); err != nil {
			t.Errorf("%d %s: %v", c.most, name, err)
		}
		c.rows(all, c.most)
		if _, err := read(written(all), 1, 0); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a %s beyond %d: %v, want %q", name, c.most, err, c.want)
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
		stored := rows(got)
		again, err := read(stored, s.entry, s.now)
		if err != nil || !slices.EqualFunc(rows(again), stored, slices.Equal) || again.Len() != got.Len() || again.Bytes() != got.Bytes() {
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
