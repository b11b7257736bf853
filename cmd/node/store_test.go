package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"taskledger/internal/testcluster"
)

// storeOf returns the URL at which a node says that its task store is.
func storeOf(t *testing.T, n *node) string {
	t.Helper()
	for _, line := range n.printed {
		if at, is := strings.CutPrefix(strings.TrimSpace(line), "store "); is {
			return strings.TrimSpace(at)
		}
	}
	t.Fatalf("printed %q", n.printed)
	return ""
}

func TestStore_IsServedAtTheRootOfItsListenerAndByCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--api", "127.0.0.1:0", "--store-listen", "127.0.0.1:0", "--store-name", "crawl")
	root := storeOf(t, n)
	at := advertised(t, dir)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	if status, text := call(t, client, "POST", root+"/update", at.Token, `{"clientid":7,"adds":[{"group":"map","data":"over HTTP"}]}`); status != 200 || !strings.Contains(text, `"id":1,"group":"map"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := call(t, client, "GET", root+"/groups", "nobody", ""); status != 401 || !strings.HasPrefix(text, `{"errors":[`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := call(t, client, "GET", root+"/v1/nodes", at.Token, ""); status != 404 {
		t.Errorf("the listener serves more than the store: %d %s", status, text)
	}

	secret := must(t, dir, "token", "new", "crawler", "--role", "submitter", "--affinity-prefix", "store:crawl")
	status, text := 0, ""
	testcluster.Await(t, "the token is known", func() bool {
		status, text = call(t, client, "GET", root+"/group/map?linear=1", secret, "")
		return status != http.StatusUnauthorized
	})
	if status != 200 || !strings.Contains(text, "over HTTP") {
		t.Errorf("%d %s", status, text)
	}
	if status, text = call(t, client, "GET", at.URL+"/store/default/groups", secret, ""); status != 403 {
		t.Errorf("another store: %d %s", status, text)
	}

	in := func(args ...string) string {
		t.Helper()
		return must(t, dir, append([]string{"store"}, append(args, "--store-name", "crawl")...)...)
	}
	in("update", `{"adds":[{"group":"map","data":"by command"},{"group":"reduce","timespec":-3600000}]}`)
	if got := in("groups"); got != "GROUP\nmap\nreduce" {
		t.Errorf("%q", got)
	}
	if got := in("list", "map"); !strings.Contains(got, "over HTTP") || !strings.Contains(got, "by command") {
		t.Errorf("%q", got)
	}
	if got := in("list", "map", "--limit", "1", "-o", "json"); strings.Count(got, "\n") != 0 || !strings.Contains(got, `"data":"over HTTP"`) {
		t.Errorf("%q", got)
	}
	if got := in("list", "reduce"); strings.Contains(got, "reduce") {
		t.Errorf("not available, and listed: %q", got)
	}
	var claimed struct{ ID, OwnerID int64 }
	if err := json.Unmarshal([]byte(in("claim", "map", "-o", "json")), &claimed); err != nil || claimed.ID != 4 {
		t.Errorf("%+v, %v", claimed, err)
	}
	if r := run(t, dir, "store", "update", `{"clientid":1,"deletes":[4]}`, "--store-name", "crawl"); r.code != 5 || !strings.Contains(r.err, "task 4") || strings.Count(r.err, "store crawl") != 1 {
		t.Errorf("%+v", r)
	}
	if got := in("get", "4", "--linear"); !strings.Contains(got, "map") {
		t.Errorf("%q", got)
	}
	if got := strings.Join(strings.Fields(in("stats")), " "); !strings.Contains(got, "map 2 1 0 1 19 ") || !strings.Contains(got, "reduce 1 0 1 0 0 -") {
		t.Errorf("%q", got)
	}
	in("update", `{"deletes":[4]}`) // the same user has claimed it
	if r := run(t, dir, "store", "get", "4", "--store-name", "crawl"); r.code != 3 {
		t.Errorf("%+v", r)
	}
	if got := in("claim", "none", "--wait-for", "1ms"); got != "" {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{`id "x": want a number`, []string{"get", "x"}},
		{"want REQUEST or --file", []string{"update"}},
		{"request: body: ", []string{"update", "{"}},
		{"update: empty: want depends", []string{"update", "{}"}},
		{"colour", []string{"update", `{"adds":[{"group":"g","colour":1}]}`}},
		{"duration", []string{"claim", "g", "--duration", "0s"}},
		{"limit", []string{"list", "g", "--limit", "-1"}},
		{"byte 1 is '/'", []string{"groups", "--store-name", "a/b"}},
	} {
		if r := run(t, dir, append([]string{"store"}, c.args...)...); r.code != 2 || !strings.Contains(r.err, c.want) {
			t.Errorf("%q: %+v, want %q", c.args, r, c.want)
		}
	}
}

// What the records of items have in common with tasks is the id, and neither behavior nor status.
func TestReplay_OfTheRecordItemTakesTheIdOfAnItem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir)
	must(t, dir, "store", "update", `{"adds":[{"group":"g"},{"group":"g"}]}`)
	must(t, dir, "store", "update", `{"deletes":[2]}`)
	var got []string
	for _, e := range objects(t, must(t, dir, "replay", "--record", "item", "--task", "store:default/2")) {
		got = append(got, fmt.Sprint(e["record"], " ", e["kind"]))
	}
	if !slices.Equal(got, []string{"item ItemAdded", "item ItemRemoved"}) {
		t.Errorf("replayed %q", got)
	}
	if n := len(objects(t, must(t, dir, "replay", "--record", "item"))); n != 3 {
		t.Errorf("%d events of items, want 3", n)
	}
	if r := run(t, dir, "replay", "--record", "item", "--task", "store:default/9"); r.code != 0 || r.out != "" || !strings.Contains(r.err, "store:default/9") {
		t.Errorf("an item that never was: %+v", r)
	}
	for _, bad := range [][]string{{"item", "--behavior", "noop"}, {"item", "--status", "SUCCESS"}, {"settings", "--task", "store:default/1"}, {"journal", "--behavior", "noop"}} {
		if r := run(t, dir, append([]string{"replay", "--record"}, bad...)...); r.code != 2 || !strings.Contains(r.err, "--record "+bad[0]) {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}
