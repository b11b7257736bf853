package sync_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/sync"
	"taskledger/task"
)

// all selects every run of the source shop.
const all = "/tasks?source=shop&start=2026-11-28T00:00:00Z&end=2026-11-29T00:00:00Z"

func ids(l sync.Tasks) (ids []string) {
	for _, t := range l.Tasks {
		ids = append(ids, t.ID)
	}
	return ids
}

func TestShow_HasTheEightKeysOfTheDesign(t *testing.T) {
	w := newWorld()
	id := w.run("shop", "orders", 0, task.Success, task.SubFinal)
	s := serve(t, w)
	const want = `","source":"shop","collection":"orders","priority":199998204132800,` +
		`"created_at":"2026-11-28T12:00:00.000Z","started_at":"2026-11-28T12:00:00.500Z",` +
		`"finished_at":"2026-11-28T12:00:00.900Z","status":"SUCCESS"}` + "\n"
	a := s.want(s.ask("viewer", "GET", "/tasks/"+id+"/"), 200, "")
	if got := a.Body.String(); got != `{"id":"`+id+want {
		t.Errorf("%s", got)
	}
}

// An id tells its source and its collection not apart: what neither collections nor parameters tell is 410.
func TestShow_TellsTheSourceThatTheRunHad(t *testing.T) {
	w := newWorld()
	old := w.run("shop_old", "orders", 0, task.Created, task.SubReady)
	gone := w.run("shop_a", "b", 0, task.Success, task.SubFinal)
	lost := w.run("shop", "lost", 0, task.Success, task.SubFinal)
	here := w.run("shop_old", "orders", 0, task.Success, task.SubFinal)
	hand := w.run("shop", "orders", 0, task.Created, task.SubReady)
	w.params[w.tasks[2].ID], w.params[w.tasks[3].ID], w.tasks[4].Priority = nil, nil, 0
	s := serve(t, w)
	s.want(s.ask("viewer", "GET", "/tasks/"+here), 200, `"source":"shop_old","collection":"orders"`)
	s.want(s.ask("viewer", "GET", "/tasks/"+hand), 404, "no run of a collection")
	s.want(s.ask("viewer", "GET", "/tasks/"+old), 200, `"source":"shop_old","collection":"orders"`)
	s.want(s.ask("viewer", "GET", "/tasks/"+gone), 200, `"source":"shop_a","collection":"b"`)
	s.want(s.ask("viewer", "GET", "/tasks/"+lost), 410, "parameters")
}

func TestShow_FindsRunsOfCollectionsAlone(t *testing.T) {
	w := newWorld()
	id := w.run("shop", "orders", 0, task.Created, task.SubReady)
	prices := w.run("shop", "prices", 0, task.Created, task.SubReady)
	other := w.run("shop", "nightly", 0, task.Created, task.SubReady)
	w.tasks[2].Behavior = "sleep"
	s := serve(t, w)
	never := strings.Replace(id, "orders", "stock", 1)
	for _, path := range []string{"", "/logs"} {
		s.want(s.ask("viewer", "GET", "/tasks/"+never+path), 404, `there is no task \"`+never+`\"`)
		s.want(s.ask("viewer", "GET", "/tasks/"+other+path), 404, "not-found")
		s.want(s.ask("viewer", "GET", "/tasks/shop_orders"+path), 404, "not-found")
		s.want(s.ask("viewer", "GET", "/tasks/"+id+"0"+path), 404, "not-found")
		s.want(s.ask("tenant", "GET", "/tasks/"+id+path), 200, "")
		s.want(s.ask("tenant", "GET", "/tasks/"+prices+path), 404, "not-found")
		s.want(s.ask("sleeper", "GET", "/tasks/"+id+path), 404, "not-found")
	}
}

// Runs of the source shop are listed, also those of a collection that was taken out, and none of shop_old, whose ids
// begin alike.
func TestList_HasTheRunsOfItsSourceNewestFirst(t *testing.T) {
	w := newWorld()
	var want []string
	for i := range 4 {
		want = append(want, w.run("shop", "orders", i, task.Success, task.SubFinal))
		w.run("shop_old", "orders", i, task.Success, task.SubFinal)
		want = append(want, w.run("shop", "gone", i, task.Success, task.SubFinal))
		w.run("shop_gone", "orders", i, task.Failure, task.SubFinal)
	}
	slices.Reverse(want)
	s := serve(t, w)
	var whole sync.Tasks
	s.read(all, &whole)
	if got := ids(whole); !slices.Equal(got, want) || whole.Cursor != "" {
		t.Errorf("%q, want %q", got, want)
	}
	s.read(strings.Replace(all, "/tasks?", "/tasks/?", 1), &whole)
	if got := ids(whole); !slices.Equal(got, want) {
		t.Errorf("with a slash %q", got)
	}
	for limit := 1; limit <= 9; limit++ {
		var got []string
		page := sync.Tasks{}
		for more := true; more; more = page.Cursor != "" {
			path := fmt.Sprintf("%s&limit=%d&cursor=%s", all, limit, page.Cursor)
			page = sync.Tasks{}
			if s.read(path, &page); len(page.Tasks) > limit {
				t.Fatalf("%d runs with limit %d", len(page.Tasks), limit)
			}
			got = append(got, ids(page)...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("by pages of %d: %q, want %q", limit, got, want)
		}
	}
	for name, runs := range map[string]int{"orders": 4, "gone": 4, "prices": 0} {
		if s.read(all+"&collection="+name, &whole); len(whole.Tasks) != runs {
			t.Errorf("%s: %q", name, ids(whole))
		}
	}
}

func TestList_IncludesBothEndsOfItsTime(t *testing.T) {
	w := newWorld()
	for i := range 5 {
		w.run("shop", "orders", i, task.Created, task.SubReady)
	}
	s := serve(t, w)
	for span, want := range map[string]int{
		"start=2026-11-28T12:00:01Z&end=2026-11-28T12:00:03Z":               3,
		"start=2026-11-28T12:00:01.0001Z&end=2026-11-28T12:00:02.999Z":      1,
		"start=2026-11-28T13:00:04%2B01:00&end=2026-11-28T12:00:04Z":        1,
		"start=1970-01-01T00:00:00Z&end=9999-12-31T23:59:59Z":               5,
		"start=0001-01-01T00:00:00Z&end=2026-11-28T12:00:00.000001Z":        1,
		"start=2026-11-28T12:00:03Z&end=2026-11-28T12:00:01Z":               0,
		"start=2026-11-28T12:00:03Z&end=1969-12-31T00:00:00Z":               0,
		"start=2026-11-28T12:00:03Z&end=2026-11-28T12:00:01Z&limit=2":       0,
		"start=2026-11-28T12:00:00.000000Z&end=2026-11-28T12:00:00.000000Z": 1,
	} {
		a := s.want(s.ask("viewer", "GET", "/tasks?source=shop&"+span), 200, `{"tasks":[`)
		if got := strings.Count(a.Body.String(), `"id":`); got != want {
			t.Errorf("%s: %d runs, want %d", span, got, want)
		}
	}
}

func TestList_SelectsByStatusInAnyCase(t *testing.T) {
	w := newWorld()
	want := map[string][]string{
		"running":   {w.run("shop", "orders", 0, task.Running, task.SubRunning)},
		"Scheduled": {w.run("shop", "orders", 1, task.Failure, task.SubRetry)},
		"FAILED": {
			w.run("shop", "orders", 2, task.Failure, task.SubFinal),
			w.run("shop", "orders", 3, task.Created, task.SubCancelled),
		},
		"success": {w.run("shop", "orders", 4, task.Success, task.SubFinal)},
	}
	s := serve(t, w)
	for status, runs := range want {
		for _, limit := range []string{"", "&limit=7"} {
			var got sync.Tasks
			s.read(all+"&status="+status+limit, &got)
			slices.Reverse(got.Tasks)
			if !slices.Equal(ids(got), runs) {
				t.Errorf("%s: %q, want %q", status, ids(got), runs)
			}
		}
	}
}

func TestList_LimitsATokenToItsRuns(t *testing.T) {
	w := newWorld()
	id := w.run("shop", "orders", 0, task.Created, task.SubReady)
	w.run("shop", "prices", 0, task.Created, task.SubReady)
	s := serve(t, w)
	a := s.want(s.ask("tenant", "GET", all), 200, id)
	if strings.Contains(a.Body.String(), "prices") {
		t.Errorf("%s", a.Body)
	}
	s.want(s.ask("tenant", "GET", all+"&collection=prices"), 400, `"field":"collection"`)
	s.want(s.ask("sleeper", "GET", all), 400, `"field":"source"`)
}

// A list that lacks the runs of a shard is no list.
func TestList_IsRefusedWhereAShardDoesNotAnswer(t *testing.T) {
	w := newWorld()
	w.missing = true
	s := serve(t, w)
	for _, limit := range []string{"", "&limit=2"} {
		for _, asked := range []string{all, all + "&collection=gone", strings.Replace(all, "shop", "gone", 1)} {
			a := s.want(s.ask("viewer", "GET", asked+limit), 503, "shard 3")
			if a.Header().Get("Retry-After") == "" {
				t.Errorf("%v", a.Header())
			}
		}
	}
}

func TestRequests_AreRefusedByTheirParameter(t *testing.T) {
	w := newWorld()
	id := w.run("shop", "orders", 0, task.Created, task.SubReady)
	s := serve(t, w)
	const span = "&start=2026-11-28T00:00:00Z&end=2026-11-29T00:00:00Z"
	for path, field := range map[string]string{
		"/tasks":                                                  "source",
		"/tasks?start=2026-11-28T00:00:00Z":                       "source",
		"/tasks?source=" + span:                                   "source",
		"/tasks?source=none" + span:                               "source",
		"/tasks?source=sho" + span:                                "source",
		"/tasks?source=a/b" + span:                                "source",
		"/tasks?source=shop_nightly" + span:                       "source",
		"/tasks?source=shop&end=2026-11-28T00:00:00Z":             "start",
		"/tasks?source=shop&start=2026-11-28T00:00:00Z":           "end",
		"/tasks?source=shop&start=today&end=2026-11-28T00:00:00Z": "start",
		"/tasks?source=shop&end=1&start=2026-11-28T00:00:00Z":     "end",
		all + "&status=CANCELED":                                  "status",
		all + "&collection=none":                                  "collection",
		all + "&collection=nightly":                               "collection",
		all + "&collection=old_orders":                            "collection",
		all + "&limit=0":                                          "limit",
		all + "&limit=1001":                                       "limit",
		all + "&limit=x":                                          "limit",
		all + "&cursor=1":                                         "cursor",
		all + "&offset=1":                                         "offset",
		all + "&source=shop":                                      "source",
		"/tasks/" + id + "?start=x":                               "start",
		"/tasks/" + id + "/logs?start=x":                          "start",
		"/tasks/" + id + "/logs?end=yesterday":                    "end",
		"/tasks?source=" + strings.Repeat("s", 64) + span:         "source",
		all + "&collection=a%2Fb":                                 "collection",
		all + "&collection=" + strings.Repeat("c", 64):            "collection",
		all + "&limit=2.5":                                        "limit",
		"/tasks/" + id + "/logs?limit=-1":                         "limit",
		"/tasks/" + id + "/logs?limit=0":                          "limit",
		"/tasks/" + id + "/logs?limit=1001":                       "limit",
		"/tasks/" + id + "/logs?level=error":                      "level",
		"/schedules?limit=1":                                      "limit",
		"/tasks/" + id + "/logs?cursor=1":                         "cursor",
		"/schedules?source=shop":                                  "source",
	} {
		s.want(s.ask("viewer", "GET", path), 400, `"field":"`+field+`"`)
	}
	for query, field := range map[string]string{
		"":                                "source",
		"?collection=orders":              "source",
		"?source=shop":                    "collection",
		"?source=shop&collection=none":    "collection",
		"?source=shop&collection=nightly": "collection",
		"?source=none&collection=orders":  "source",
		"?source=shop&collection=a%2Fb":   "collection",
		"?source=shop&collection=" + strings.Repeat("c", 64): "collection",
		"?source=a%20b&collection=orders":                    "source",
		"?source=shop&collection=orders&priority=0":          "priority",
		"?source=shop&collection=orders&priority=1":          "priority",
	} {
		s.want(s.ask("submitter", "POST", "/tasks"+query), 400, `"field":"`+field+`"`)
		s.want(s.ask("submitter", "POST", "/tasks/"+query), 400, `"field":"`+field+`"`)
	}
	s.want(s.ask("tenant", "POST", "/tasks?source=shop&collection=prices"), 400, `"field":"collection"`)
	if len(w.orders) > 0 {
		t.Errorf("orders %+v", w.orders)
	}
}

func TestRoutes_AllowWhatTheirRolesMay(t *testing.T) {
	w := newWorld()
	id := w.run("shop", "orders", 0, task.Running, task.SubRunning)
	s := serve(t, w)
	for _, r := range []struct {
		method, path string
		least        string
	}{
		{"GET", all, "viewer"},
		{"GET", "/tasks/" + id, "viewer"},
		{"GET", "/tasks/" + id + "/logs", "viewer"},
		{"GET", "/schedules", "viewer"},
		{"POST", "/tasks?source=shop&collection=orders", "submitter"},
		{"POST", "/schedules/shop/orders/pause", "operator"},
		{"POST", "/schedules/shop/orders/resume", "operator"},
		{"POST", "/tasks/" + id + "/cancel", "submitter"},
	} {
		path, query, _ := strings.Cut(r.path, "?")
		for _, path := range []string{path, path + "/"} {
			allowed := false
			for _, secret := range []string{"viewer", "submitter", "operator", "admin"} {
				allowed = allowed || secret == r.least
				got := s.ask(secret, r.method, path+"?"+query)
				if refused := got.Code == http.StatusForbidden; refused == allowed || got.Code >= 500 || got.Code == 404 {
					t.Errorf("%s %s by %s: %d", r.method, path, secret, got.Code)
				}
				if strings.HasSuffix(path, "cancel") || strings.HasSuffix(path, "cancel/") {
					w.tasks[0].Status, w.tasks[0].Substatus = task.Running, task.SubRunning
				}
			}
			s.want(s.ask("", r.method, path), 401, `"message":"`)
			s.want(s.ask("worker", r.method, path), 403, `"error":"`)
			a := s.want(s.ask("admin", "DELETE", path), 405, `"message":"`)
			if allow := a.Header().Get("Allow"); !strings.Contains(allow, r.method) {
				t.Errorf("%s allows %q, want %s", path, allow, r.method)
			}
		}
	}
	s.want(s.ask("admin", "GET", "/nothing"), 404, `"message":"`)
}

// A client reads problem details, or the two keys that those of EventNative know.
func TestErrors_AreProblemDetailsWithMessageAndError(t *testing.T) {
	s := serve(t, newWorld())
	a := s.want(s.ask("viewer", "GET", "/tasks"), 400, "")
	const want = `{"type":"urn:taskledger:problem:invalid","title":"A field has a value that cannot be","status":400,` +
		`"detail":"source: it is required","field":"source","message":"source: it is required",` +
		`"error":"A field has a value that cannot be"}` + "\n"
	if got := a.Body.String(); got != want || a.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%v %s", a.Header(), got)
	}
}

func TestErrors_TellWhenToAskAgain(t *testing.T) {
	s := serveWithin(t, newWorld(), api.Limits{PerSecond: 0.001, Burst: 1})
	s.want(s.ask("viewer", "GET", "/schedules"), 200, "")
	a := s.want(s.ask("viewer", "GET", "/schedules"), 429, `"message":"`)
	if a.Header().Get("Retry-After") != "1" {
		t.Errorf("%v", a.Header())
	}
}

func TestOpenAPI_DocumentsTheRoutesAndTheirErrors(t *testing.T) {
	s := serve(t, newWorld())
	r := httptest.NewRequest("GET", "/openapi.json", nil)
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer viewer")
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	var doc struct {
		Paths      map[string]map[string]any
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/tasks", "/tasks/{task}", "/tasks/{task}/logs", "/schedules"} {
		if doc.Paths["/sync"+path]["get"] == nil {
			t.Errorf("GET %s is not there", path)
		}
	}
	for _, path := range []string{
		"/tasks", "/tasks/{task}/cancel", "/schedules/{source}/{collection}/pause",
		"/schedules/{source}/{collection}/resume",
	} {
		if doc.Paths["/sync"+path]["post"] == nil {
			t.Errorf("POST %s is not there", path)
		}
	}
	for name, keys := range map[string]int{"SyncTask": 8, "SyncLine": 3} {
		if got := len(doc.Components.Schemas[name].Properties); got != keys {
			t.Errorf("%s has %d keys, want %d", name, got, keys)
		}
	}
	for _, key := range []string{"type", "detail", "message", "error"} {
		if doc.Components.Schemas["SyncFailure"].Properties[key] == nil {
			t.Errorf("errors have no %s", key)
		}
	}
}
