package ui_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/stores"
	"taskledger/api/token"
	"taskledger/api/ui"
	"taskledger/item"
)

func (s *server) update(store, update string) {
	s.t.Helper()
	if got := apitest.Ask(s.api, "admin", http.MethodPost, "/store/"+store+"/update", update); got.Code != 200 {
		s.t.Fatalf("update %s: %d %s", store, got.Code, got.Body)
	}
}

func TestStores_AreAskedForByNameAndRememberedByTheBrowser(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/stores"), 200, "No store was looked at yet", `<pre tabindex="0">taskledger store update`)
	got := s.want(s.get("viewer", "/ui/stores?name=jobs.1"), 303)
	if to := got.header.Get("Location"); to != "/ui/stores/jobs.1" {
		t.Error(to)
	}
	got = s.want(s.get("viewer", "/ui/stores/jobs.1"), 200, "The store is empty", "--store-name jobs.1</pre>")
	cookie := cookieOf(got)
	s.want(s.get("viewer", "/ui/stores", "Cookie", cookie), 200, `href="/ui/stores/jobs.1"`)
	if again := s.get("viewer", "/ui/stores/jobs.1", "Cookie", cookie); again.header.Get("Set-Cookie") != "" {
		t.Errorf("the same store is remembered again: %s", again.header.Get("Set-Cookie"))
	}
	for i := range 30 {
		if is := cookieOf(s.get("viewer", fmt.Sprintf("/ui/stores/n%d", i), "Cookie", cookie)); is != "" {
			cookie = is
		}
	}
	if n := strings.Count(cookie, ",") + 1; n != 20 || !strings.Contains(cookie, "n29,n28") {
		t.Errorf("%d are remembered: %s", n, cookie)
	}
	forged := strings.Split(cookie, "=")[0] + "=<b>,../x,ok,ok"
	got = s.want(s.get("viewer", "/ui/stores", "Cookie", forged), 200, `href="/ui/stores/ok"`)
	s.wantNot(got, "<b>", "../x")
	s.want(s.get("viewer", "/ui/stores?name=a+b"), 200, `aria-invalid="true"`, `value="a b"`)
}

func TestStore_ShowsGroupsAndTheirTasks(t *testing.T) {
	s := serve(t, func(cfg *api.Config, of *ui.Config) {
		known := apitest.Everybody(apitest.Secrets{"of a": {Name: "anna", Role: token.Viewer, Prefix: "store:a"}})
		cfg.Tokens, of.Tokens = known, known
	})
	s.update("a", `{"clientid":1,"adds":[{"group":"map","data":"<b>x</b>"},{"group":"map","data64":"//8="},{"group":"late/.. ","data":"y","timespec":4102444800000}]}`)
	got := s.want(s.get("viewer", "/ui/stores/a"), 200, "map", "late/.. ", `data-label="Available">2</td>`, `data-label="Waiting">1</td>`, "since ")
	s.wantNot(got, "<b>x")
	s.want(s.get("viewer", "/ui/stores/a?group=map"), 200, "&lt;b&gt;x&lt;/b&gt;", "2 bytes are not shown")
	s.want(s.get("viewer", "/ui/stores/a?group=late%2F..+"), 200, "2100-01-01")
	s.want(s.get("viewer", "/ui/stores/a?group=none"), 200, "It has none.")
	s.want(s.get("of a", "/ui/stores/a"), 200, "map")
	s.want(s.get("of a", "/ui/stores/b"), 403)
	s.want(s.get("viewer", "/ui/stores/a?group=map&after=x"), 400, "after")

	adds := strings.TrimSuffix(strings.Repeat(`{"group":"many","data":"`+strings.Repeat("é", 3000)+`"},`, 30), ",")
	for range 2 {
		s.update("a", `{"clientid":1,"adds":[`+adds+`]}`)
	}
	seen, pages := 0, 0
	for path := "/ui/stores/a?group=many"; path != ""; pages++ {
		got := s.want(s.get("viewer", path), 200, "bytes are not shown")
		seen += strings.Count(got.text, `<tr id="i-`)
		if path = ""; strings.Contains(got.text, "Next tasks") {
			_, rest, _ := strings.Cut(got.text, `<p><a class="button" href="`)
			path, _, _ = strings.Cut(rest, `"`)
			path = strings.ReplaceAll(path, "&amp;", "&")
		}
	}
	if seen != 60 || pages != 3 {
		t.Errorf("%d tasks on %d pages", seen, pages)
	}
}

// groups are all stores, each with these.
type groups struct {
	operations.Stores
	all []item.Group
}

func (g groups) Groups(context.Context, string, bool) ([]item.Group, error) { return g.all, nil }

func (groups) Group(context.Context, string, item.Page) ([]item.Item, bool, error) {
	return nil, false, nil
}

// storesOf is a dashboard on stores with so many groups, each with a task and with a name.
func storesOf(t *testing.T, n int, name string) *server {
	all := make([]item.Group, n)
	for i := range all {
		all[i] = item.Group{Name: fmt.Sprintf("%s%06d", name, i), Available: 1, Oldest: 1}
	}
	return serve(t, func(cfg *api.Config, of *ui.Config) {
		cfg.Routes = stores.Routes(groups{all: all})
		of.Within = time.Minute
	})
}

func TestStore_ShowsManyGroupsInPagesByName(t *testing.T) {
	s := storesOf(t, 10_000, "g/&")
	s.want(s.get("viewer", "/ui/stores?name=a"), 303)
	seen, pages := 0, 0
	for path := "/ui/stores/a"; path != ""; pages++ {
		got := s.want(s.get("viewer", path), 200, `<div class="big">10 000</div>`, "10 000 groups have tasks",
			fmt.Sprintf("<bdi>g/&amp;%06d</bdi>", seen))
		if len(got.text) > 200<<10 {
			t.Fatalf("%s: %d bytes", path, len(got.text))
		}
		seen += strings.Count(got.text, `<tr><td data-label="Group">`)
		next, _, _ := strings.Cut(got.text, `" rel="next">Next groups`)
		if path = ""; len(next) < len(got.text) {
			path = strings.ReplaceAll(next[strings.LastIndex(next, `"`)+1:], "&amp;", "&")
		}
	}
	if seen != 10_000 || pages != 50 {
		t.Errorf("%d groups on %d pages", seen, pages)
	}
	got := s.want(s.get("viewer", "/ui/stores/a?from=g%2F%26009900&group=g%2F%26009900"), 200,
		"First groups", "It has none.", "from=g%2F%26009900&amp;group=g%2F%26009999")
	s.wantNot(got, "Next groups", "009899")
	s.want(s.get("viewer", "/ui/stores/a?from=h"), 200, "10 000 groups have tasks: 0 of them", "First groups")
}

// The API escapes a name to six times its size: the counts of the most groups have more bytes than one question takes.
func TestStore_IsShownHoweverManyBytesItsCountsHave(t *testing.T) {
	s := storesOf(t, 45_000, strings.Repeat("<", 250))
	got := s.want(s.get("viewer", "/ui/stores/a"), 200, "45 000 groups have tasks")
	s.wantNot(got, "<<")
	if len(got.text) > 1<<20 {
		t.Errorf("%d bytes", len(got.text))
	}
}

// What may have megabytes is made by a few at once.
func TestPages_WithManyTextsAreLarge(t *testing.T) {
	for _, r := range serve(t).routes() {
		if is := r.Pattern; (is == "/ui/stores/{name}" || is == "/ui/tasks/{id}/logs") && !r.Large {
			t.Errorf("%s is not large", is)
		}
	}
}
