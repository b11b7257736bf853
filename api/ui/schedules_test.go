package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/schedules"
	"taskledger/api/ui"
	"taskledger/behaviors"
	"taskledger/engine/enginetest"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// schedule sets a schedule that does not fire by itself.
func (s *server) schedule(name, definition string) {
	s.t.Helper()
	got := apitest.Ask(s.api, "admin", http.MethodPut, "/v1/schedules/"+name, definition)
	if got.Code >= 300 {
		s.t.Fatalf("set %s: %d %s", name, got.Code, got.Body)
	}
}

const yearly = `{"cron":"0 0 3 1 1 ?","timezone":"Europe/Berlin","behavior":"noop","params":{}}`

func TestSchedules_OfAnEmptyClusterSayHowToBegin(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/schedules"), 200, "There is no schedule yet", `<pre tabindex="0">taskledger schedule set`)
	s.want(s.get("viewer", "/ui/schedules?prefix=x"), 200, "No schedule matches")
	s.want(s.get("viewer", "/ui/collections"), 200, "There is no collection yet",
		`<pre tabindex="0">taskledger sync apply`)
}

func TestSchedules_AreFilteredAndKeepWhatWasTyped(t *testing.T) {
	s := serve(t)
	s.schedule("nightly", yearly)
	s.schedule("t1.other", `{"behavior":"sleep","params":{"duration":"1s"}}`)
	s.want(s.get("viewer", "/ui/schedules"), 200, "nightly", "t1.other", "by hand", "Europe/Berlin")
	s.wantNot(s.get("viewer", "/ui/schedules"), `name="verb"`)
	for query, want := range map[string]string{"prefix=night": "nightly", "behavior=sleep": "t1.other"} {
		got := s.want(s.get("viewer", "/ui/schedules?"+query), 200, `id="c-`+want+`"`)
		if n := strings.Count(got.text, `<tr id="c-`); n != 1 {
			t.Errorf("%s: %d schedules", query, n)
		}
	}
	got := s.want(s.get("tenant", "/ui/schedules"), 200, "t1.other")
	s.wantNot(got, "nightly")
	s.want(s.get("tenant", "/ui/schedules/nightly"), 404)
	s.want(s.get("sleeper", "/ui/schedules/nightly"), 404)
	s.want(s.get("sleeper", "/ui/schedules/t1.other"), 200, "by hand")
	s.want(s.get("viewer", "/ui/schedules?behavior=No+Such"), 200, `aria-invalid="true"`, `id="w-behavior"`, `value="No Such"`)
	s.want(s.get("viewer", "/ui/schedules?paused=maybe"), 200, `id="w-paused"`, `<option selected>maybe`)
	s.want(s.get("viewer", "/ui/schedules?colour=red"), 400, "colour")
}

func TestSchedule_ShowsTicksInItsZoneAndTheViewers(t *testing.T) {
	s := serve(t)
	s.schedule("nightly", yearly)
	s.want(s.get("viewer", "/ui/schedules/nightly"), 200, "03:00:00 CET", "02:00:00 UTC", "0 0 3 1 1 ?",
		"It has none that are kept", "<dt>Last tick</dt><dd>none yet</dd>", "0 have not ended,", "0 are kept;",
		`<td data-label="In its zone">`, `scope="col">In Europe/Berlin<`, "of the newest 200 events of the schedule at most")
	s.want(s.get("viewer", "/ui/schedules"), 200, `data-label="Last tick">none yet<`)
	s.want(s.get("viewer", "/ui/schedules/none"), 404)
}

func TestSchedule_IsRunPausedAndResumed(t *testing.T) {
	s := serve(t)
	s.schedule("nightly", yearly)
	at := "/ui/schedules/nightly"
	s.wantNot(s.get("viewer", at), `name="verb"`)
	page := s.want(s.get("submitter", at), 200, `value="run"`)
	s.wantNot(page, `value="pause"`)
	form := url.Values{"name": {"nightly"}, "verb": {"run"}, "next": {at}, "key": {between(page.text, `name="key" value="`)}}
	s.want(s.send("submitter", "POST", "/ui/schedules", form), 303)
	s.want(s.send("submitter", "POST", "/ui/schedules", form), 409, "0 of 1 were done", "no new run: nightly/run:")
	page = s.want(s.get("viewer", at), 200, "nightly/run:")
	s.node.Await(t, events.TaskID("nightly/run:"+between(page.text, `<tr id="t-nightly/run:`)))
	s.want(s.get("viewer", at), 200, "0 have not ended,", "1 is kept;")
	if n := strings.Count(page.text, `<tr id="t-nightly/run:`); n != 1 {
		t.Errorf("%d runs: %s", n, clip(page.text))
	}
	form = url.Values{
		"name":    {"nightly"},
		"verb":    {"pause"},
		"reason":  {"moving house"},
		"version": {between(s.get("operator", at).text, `name="version" value="`)},
		"next":    {at},
	}
	s.want(s.send("submitter", "POST", "/ui/schedules", form), 403, "role operator")
	s.want(s.send("operator", "POST", "/ui/schedules", form), 303)
	s.want(s.get("operator", at), 200, "moving house", "olga", "paused", `value="resume"`)
	s.schedule("nightly", strings.Replace(yearly, "0 0 3", "0 0 4", 1))
	form.Set("verb", "resume")
	s.want(s.send("operator", "POST", "/ui/schedules", form), 412, "changed", `href="/ui/schedules/nightly"`)
	s.want(s.get("operator", at), 200, "<strong>paused</strong>")
	form.Del("version")
	s.want(s.send("submitter", "POST", "/ui/schedules", form), 303)
	s.want(s.get("viewer", at), 200, "resumed", "<strong>on</strong>")
	s.want(s.get("viewer", "/ui/audit"), 200, "SchedulePaused", "ScheduleResumed", "moving house", "schedule nightly", `href="/ui/schedules/nightly"`)
	s.wantNot(s.get("viewer", "/ui/audit?by=olga"), "ScheduleResumed")
}

// Where runs must not overlap, one that is asked for while another one runs shares that one, and the next is made.
func TestSchedule_IsRunAgainAfterARunThatWasShared(t *testing.T) {
	s := serve(t)
	s.schedule("long", `{"behavior":"sleep","params":{"duration":"1h"}}`)
	const at = "/ui/schedules/long"
	press := func(shared string) (runs int, newest string) {
		page := s.want(s.get("operator", at), 200, `value="run"`)
		form := url.Values{"name": {"long"}, "verb": {"run"}, "next": {at}, "key": {between(page.text, `name="key" value="`)}}
		got := s.send("operator", "POST", "/ui/schedules", form)
		if is := got.status == 409 && strings.Contains(got.text, "no new run: "+shared+" is shared"); is != (shared != "") {
			t.Errorf("shares %q: %d %s", shared, got.status, clip(got.text))
		}
		page = s.want(s.get("operator", at), 200)
		return strings.Count(page.text, `<tr id="t-long/run:`), between(page.text, `<tr id="t-`)
	}
	runs, first := press("")
	if again, _ := press(first); runs != 1 || again != 1 {
		t.Fatalf("%d runs, and %d after it was asked for again", runs, again)
	}
	s.ask("operator", "/v1/tasks/"+strings.Replace(first, "/", "~", 1)+"/cancel", `{"reason":"enough"}`)
	s.node.Await(t, events.TaskID(first))
	if runs, newest := press(""); runs != 2 || newest == first {
		t.Errorf("%d runs, of which %s is the newest", runs, newest)
	}
}

// listless has no list of tasks.
type listless struct{ operations.Direct }

func (listless) ListPage(context.Context, task.Filter, string) (task.Page, error) {
	return task.Page{}, store.ErrUnavailable
}

// A page without the list of runs cannot tell whether its form would make another run.
func TestSchedule_IsNotRunWhileItsRunsAreMissing(t *testing.T) {
	s := serve(t, func(cfg *api.Config, _ *ui.Config) {
		cfg.Client = listless{cfg.Client.(operations.Direct)}
	})
	s.schedule("nightly", yearly)
	got := s.want(s.get("operator", "/ui/schedules/nightly"), 200, "runs: ", "once its runs are known", `value="pause"`)
	s.wantNot(got, `value="run"`)
}

// between returns what stands behind a text, up to a quote.
func between(page, before string) string {
	_, rest, _ := strings.Cut(page, before)
	is, _, _ := strings.Cut(rest, `"`)
	return is
}

func TestSchedules_AreSteeredTogetherAndEachTellsWhatBecameOfIt(t *testing.T) {
	s := serve(t)
	s.schedule("a", yearly)
	s.schedule("b", yearly)
	form := url.Values{"name": {"a", "b"}, "verb": {"pause"}, "reason": {"why"}, "next": {"/ui/schedules?prefix=a"}}
	got := s.want(s.send("operator", "POST", "/ui/schedules", form), 303)
	if to := got.header.Get("Location"); to != "/ui/schedules?prefix=a" {
		t.Error(to)
	}
	s.want(s.get("viewer", "/ui/schedules?paused=true"), 200, `id="c-a"`, `id="c-b"`)
	form["name"] = []string{"a", "gone", "../b"}
	form.Set("verb", "resume")
	s.want(s.send("operator", "POST", "/ui/schedules", form), 409, "1 of 3 were done", "not done", `href="/ui/schedules?prefix=a"`)
	s.want(s.get("viewer", "/ui/schedules?paused=true"), 200, `id="c-b"`)
	delete(form, "name")
	s.want(s.send("operator", "POST", "/ui/schedules", form), 400, "choose at least one")
	form["name"] = []string{"a"}
	form.Set("verb", "delete")
	s.want(s.send("operator", "POST", "/ui/schedules", form), 400, "want run, pause or resume")
	form["name"] = make([]string, 51)
	form.Set("verb", "run")
	s.want(s.send("operator", "POST", "/ui/schedules", form), 400, "too many at once")
}

// However long ago a tick had no run, its reason is found, page by page.
func TestSchedule_ShowsOlderEventsByCursor(t *testing.T) {
	s := serve(t)
	s.schedule("nightly", yearly)
	for i := range 110 {
		s.ask("operator", "/v1/schedules/nightly/pause", fmt.Sprintf(`{"reason":"n%d."}`, i))
		s.ask("operator", "/v1/schedules/nightly/resume", "")
	}
	page := s.want(s.get("viewer", "/ui/schedules/nightly"), 200, "n109.", "n10.")
	s.wantNot(page, "n9.", "Newest events")
	_, rest, _ := strings.Cut(page.text, `href="/ui/schedules/nightly?cursor=`)
	cursor, _, _ := strings.Cut(rest, `"`)
	older := s.want(s.get("viewer", "/ui/schedules/nightly?cursor="+cursor), 200, "n9.", "n0.", "Newest events", ">set<")
	s.wantNot(older, "n10.", "Older events")
	got := s.want(s.get("viewer", "/ui/schedules/nightly?cursor=1%26colour=red"), 200, "not whole", "cursor")
	s.wantNot(got, "<li>history: colour")
}

// The form of a page makes one run of each schedule, however often it is sent; the page has another form then.
func TestSchedules_AreRunOnceByAForm(t *testing.T) {
	s := serve(t)
	s.schedule("a", yearly)
	s.schedule("b", yearly)
	runs := func(name string) int {
		return strings.Count(s.want(s.get("viewer", "/ui/schedules/"+name), 200).text, `<tr id="t-`+name+`/run:`)
	}
	ended := func() { // another form shares a run that has not
		t.Helper()
		testcluster.Await(t, "the runs have ended", func() bool {
			of := s.get("viewer", "/ui/schedules/a").text + s.get("viewer", "/ui/schedules/b").text
			return !strings.Contains(of, "s-CREATED") && !strings.Contains(of, "s-RUNNING")
		})
	}
	page := s.want(s.get("submitter", "/ui/schedules"), 200)
	if again := s.get("submitter", "/ui/schedules", "If-None-Match", page.header.Get("ETag")); again.status != 304 {
		t.Errorf("a page that nothing has changed: %d", again.status)
	}
	form := url.Values{"name": {"a", "b"}, "verb": {"run"}, "once": {between(page.text, `name="once" value="`)}}
	s.want(s.send("submitter", "POST", "/ui/schedules", form), 303)
	for range 2 {
		got := s.want(s.send("submitter", "POST", "/ui/schedules", form), 409, "0 of 2 were done")
		s.want(got, 409, "no new run: a/run:", "no new run: b/run:")
	}
	if a, b := runs("a"), runs("b"); a != 1 || b != 1 {
		t.Errorf("%d and %d runs", a, b)
	}
	ended()
	s.want(s.send("operator", "POST", "/ui/schedules", form), 303) // that is somebody else
	ended()
	form.Set("once", between(s.get("submitter", "/ui/schedules").text, `name="once" value="`))
	s.want(s.send("submitter", "POST", "/ui/schedules", form), 303)
	if a, b := runs("a"), runs("b"); a != 3 || b != 3 || form.Get("once") == "" {
		t.Errorf("%d and %d runs by three forms", a, b)
	}
}

// collection takes the parameters of a collection, and does nothing.
var collection = behaviors.Define[json.RawMessage, string]("collection", nil)

func TestCollections_AreShownWithTheirLatestRunsAndSteered(t *testing.T) {
	s := serveOn(t, enginetest.Memory(t, collection.Bind(
		func(context.Context, json.RawMessage) (string, error) { return "", nil })))
	const orders = `{"behavior":"collection","params":{"source":"shop","collection":"orders"}}`
	s.schedule("shop_orders", orders) // its runs are not named as those of a collection
	s.want(s.get("viewer", "/ui/collections"), 200, "There is no collection yet")
	s.schedule("shop_orders?uuids=true", orders)
	s.schedule("house_meters?uuids=true", strings.NewReplacer("shop", "house", "orders", "meters").Replace(orders))
	s.want(s.get("viewer", "/ui/collections"), 200, `id="c-shop_orders"`, `id="c-house_meters"`,
		`none lately: <a href="/ui/tasks?affinity=house_meters">all runs</a>`, "when somebody asks")
	got := s.want(s.get("operator", "/ui/collections?source=shop"), 200, `id="c-shop_orders"`, `name="priority" value="300"`)
	s.wantNot(got, "house_meters")
	s.want(s.get("viewer", "/ui/collections?source=sho"), 200, "No collection of this source")
	s.wantNot(s.get("tenant", "/ui/collections"), "shop")
	form := url.Values{"name": {"shop_orders", "house_meters"}, "verb": {"run"}, "priority": {"300"}, "next": {"/ui/collections"}}
	s.wantNot(s.get("submitter", "/ui/collections"), `name="verb"`) // they may run programs
	s.want(s.send("submitter", "POST", "/ui/schedules", form), 409, "0 of 2 were done", "runs programs")
	s.want(s.send("operator", "POST", "/ui/schedules", form), 303)
	got = s.want(s.get("viewer", "/ui/collections"), 200, `href="/ui/tasks/shop_orders~`, `href="/ui/tasks/house_meters~`)
	s.wantNot(got, "all runs")
	form.Set("verb", "pause")
	form.Set("reason", "the shop is closed")
	s.want(s.send("operator", "POST", "/ui/schedules", form), 303)
	got = s.want(s.get("viewer", "/ui/collections"), 200, "the shop is closed", "olga")
	if n := strings.Count(got.text, "paused"); n < 2 {
		t.Errorf("%d are paused: %s", n, clip(got.text))
	}
}

// away has no owner that answers.
type away struct{ operations.Schedules }

func (away) List(context.Context, schedule.Filter, string, int) ([]schedule.Schedule, bool, error) {
	return nil, false, problem.New(problem.Unavailable, "nobody serves shard 3")
}

// A page whose shard nobody serves comes without it, and says so.
func TestSchedules_NameWhatIsMissing(t *testing.T) {
	s := serve(t, func(cfg *api.Config, _ *ui.Config) { cfg.Routes = schedules.Routes(away{}, nil) })
	for _, page := range []string{"/ui/schedules", "/ui/schedules?prefix=a", "/ui/collections"} {
		got := s.want(s.get("viewer", page), 200, "This page is not whole", "nobody serves shard 3")
		s.wantNot(got, "There is no", "matches")
	}
}
