package collections_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"

	syncapi "taskledger/api/sync"
	"taskledger/collections/taskjson"
)

// Pages that are asked of one node after the other tell what the whole list tells: the runs of a source over all
// shards, newest first, also those of a collection that was taken out.
func TestList_PagesOverAllNodesAreTheWholeList(t *testing.T) {
	t.Parallel()
	const rounds = 5
	w := newWorld(t, 8, "a", "b", "c")
	w.set(numbered(3))
	w.set("sources: {my: {driver: 'go:held', collections: [{name: shop_c9}]}}") // its ids begin alike
	var made []string
	for range rounds {
		for k, of := range [][2]string{{"my_shop", "c0"}, {"my_shop", "c1"}, {"my_shop", "c2"}, {"my", "shop_c9"}} {
			a := w.ask(k, sam, "POST", "/tasks?source="+of[0]+"&collection="+of[1])
			w.next().ends <- nil
			w.show(a.TaskID, taskjson.Success)
			if of[0] == "my_shop" {
				made = append(made, a.TaskID)
			}
		}
	}
	w.must(w.nodes[0].Client.Schedules().Delete(w.within(), "my_shop_c0", 0))
	const all = "/tasks?source=my_shop&start=1970-01-01T00:00:00Z&end=9999-12-31T23:59:59Z"
	list := func(node int, path string) (l syncapi.Tasks) {
		a := w.ask(node, sam, "GET", path)
		w.must(json.Unmarshal([]byte(a.text), &l))
		return l
	}
	whole := list(0, all)
	// The time of an entry may be a moment before what it decides was asked, so runs of two shards may change places.
	newestFirst := slices.IsSortedFunc(whole.Tasks, func(a, b taskjson.Task) int {
		return cmp.Compare(b.CreatedAt, a.CreatedAt)
	})
	listed := slices.Sorted(slices.Values(ids(whole)))
	if slices.Sort(made); !newestFirst || whole.Cursor != "" || !slices.Equal(listed, made) {
		t.Errorf("%+v, want %q", whole, made)
	}
	for limit := 1; limit <= len(made)+1; limit += 4 {
		var got []string
		for node, cursor := 0, ""; node == 0 || cursor != ""; node++ {
			page := list(node, fmt.Sprintf("%s&limit=%d&cursor=%s", all, limit, url.QueryEscape(cursor)))
			got, cursor = append(got, ids(page)...), page.Cursor
		}
		if !slices.Equal(got, ids(whole)) {
			t.Errorf("by pages of %d: %q, want %q", limit, got, ids(whole))
		}
	}
	if a := w.ask(1, sam, "GET", all+"&limit=2&cursor=nonsense"); a.status != 400 {
		t.Errorf("a cursor of nobody: %d %s", a.status, a.text)
	}
}

func ids(l syncapi.Tasks) (ids []string) {
	for _, is := range l.Tasks {
		ids = append(ids, is.ID)
	}
	return ids
}
