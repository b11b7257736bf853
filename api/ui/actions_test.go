package ui_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"taskledger/api/apitest"
	"taskledger/events"
	"taskledger/task"
)

// see returns a task as the API shows it.
func (s *server) see(id string) (t task.Task) {
	s.t.Helper()
	got := apitest.Ask(s.api, "admin", http.MethodGet, "/v1/tasks/"+strings.ReplaceAll(id, "/", "~"), "")
	if err := json.Unmarshal(got.Body.Bytes(), &t); err != nil || got.Code != http.StatusOK {
		s.t.Fatalf("%d %s", got.Code, got.Body)
	}
	return t
}

// asleep submits a task that does not start for an hour.
func (s *server) asleep(id string) {
	s.t.Helper()
	got := apitest.Ask(s.api, "admin", http.MethodPost, "/v1/tasks", `{"behavior":"noop","id":"`+id+`","params":{},"delay_ms":3600000}`)
	if got.Code != http.StatusAccepted {
		s.t.Fatalf("submit: %d %s", got.Code, got.Body)
	}
}

// hiddenOf returns the value of a hidden field of a page.
func hiddenOf(t *testing.T, a answer, name string) string {
	t.Helper()
	_, rest, has := strings.Cut(a.text, `<input type="hidden" name="`+name+`" value="`)
	if !has {
		t.Fatalf("no field %s: %s", name, clip(a.text))
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// do sends the form of a page of a task.
func (s *server) do(page answer, id, operation, reason string) answer {
	s.t.Helper()
	return s.send("operator", http.MethodPost, "/ui/tasks/"+strings.ReplaceAll(id, "/", "~")+"/change",
		url.Values{"operation": {operation}, "version": {hiddenOf(s.t, page, "version")}, "reason": {reason}})
}

func offers(a answer) (all []string) {
	for _, part := range strings.Split(a.text, `<button name="operation" value="`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		all = append(all, name)
	}
	return all
}

func TestTask_OffersWhatItsStateAndTheRoleAllow(t *testing.T) {
	s := serve(t)
	s.asleep("a/1")
	page := func() answer { t.Helper(); return s.want(s.get("operator", "/ui/tasks/a~1"), 200) }
	want := func(all ...string) {
		t.Helper()
		if got := strings.Join(offers(page()), " "); got != strings.Join(all, " ") {
			t.Errorf("%s, want %s", got, all)
		}
	}
	for _, secret := range []string{"viewer", "submitter"} {
		s.wantNot(s.want(s.get(secret, "/ui/tasks/a~1"), 200), `name="operation"`)
	}
	want("run-now", "suspend", "cancel", "delete")
	back := s.want(s.do(page(), "a/1", "suspend", "the <disk> is full"), 303)
	if to := back.header.Get("Location"); to != "/ui/tasks/a~1" {
		t.Error(to)
	}
	s.want(page(), 200, "suspended", "olga: the &lt;disk&gt; is full")
	want("run-now", "resume", "cancel", "delete")
	s.want(s.do(page(), "a/1", "resume", "a reason that nobody takes"), 303)
	s.want(s.do(page(), "a/1", "run-now", ""), 303)
	s.node.Await(t, events.TaskID("a/1"))
	want("retry", "delete")
	s.want(s.do(page(), "a/1", "retry", ""), 303)
	s.node.Await(t, events.TaskID("a/1"))
	if now := s.see("a/1"); now.Runs != 2 {
		t.Errorf("%d runs", now.Runs)
	}
	gone := s.want(s.do(page(), "a/1", "delete", ""), 303)
	if to := gone.header.Get("Location"); to != "/ui/tasks" {
		t.Error(to)
	}
	s.asleep("b")
	s.want(s.do(s.get("operator", "/ui/tasks/b"), "b", "cancel", "no more"), 303)
	s.want(s.get("viewer", "/ui/tasks/b"), 200, "FAILURE", "no more")
}

// A form that is late, or sent twice, says that the task has changed, and does nothing.
func TestTask_ThatHasChangedSinceItWasSeenIsLeftAsItIs(t *testing.T) {
	s := serve(t)
	s.asleep("a")
	seen := s.get("operator", "/ui/tasks/a")
	s.want(s.do(seen, "a", "suspend", "first"), 303)
	before := s.see("a").Version
	for _, operation := range []string{"suspend", "resume", "cancel", "run-now", "retry", "delete"} {
		got := s.want(s.do(seen, "a", operation, "typed before"), http.StatusPreconditionFailed,
			"the task has changed since you saw it", "nothing was done", "suspended", `hx-get="/ui/tasks/a"`)
		if operation == "suspend" {
			s.want(got, http.StatusPreconditionFailed, `value="typed before"`)
		}
		if got, want := hiddenOf(t, got, "version"), before.String(); got != want {
			t.Errorf("the page is of version %s, want %s", got, want)
		}
	}
	if now := s.see("a").Version; now != before {
		t.Errorf("it has changed: %s", now)
	}
}

func TestTask_RefusesFormsThatAreWrong(t *testing.T) {
	s := serve(t)
	s.asleep("a")
	page := s.get("operator", "/ui/tasks/a")
	post := func(form url.Values) answer { return s.send("operator", http.MethodPost, "/ui/tasks/a/change", form) }
	version := hiddenOf(t, page, "version")
	s.want(s.do(page, "a", "explode", ""), 400, "operation", "explode")
	s.want(post(url.Values{"operation": {"cancel"}}), 400, "version")
	s.want(post(url.Values{"operation": {"cancel"}, "version": {version}, "colour": {"red"}}), 400, "colour")
	s.want(post(url.Values{"operation": {"cancel", "delete"}, "version": {version}}), 400, "more than once")
	s.want(post(url.Values{"operation": {"cancel"}, "version": {version}, "reason": {strings.Repeat("x", 9000)}}), 413, "8192")
	s.want(s.do(page, "a", "cancel", strings.Repeat("x", 300)), 400, "nothing was done", "256")
	s.want(s.do(page, "a", "retry", ""), 409, "nothing was done", "cannot retry")
	s.want(s.send("viewer", http.MethodPost, "/ui/tasks/a/change", url.Values{"operation": {"cancel"}, "version": {version}}), 403, "operator")
	s.want(s.send("", http.MethodPost, "/ui/tasks/a/change", url.Values{"operation": {"cancel"}, "version": {version}}), 401, "Log in")
	s.want(s.do(page, "none", "cancel", ""), 404, "none")
	s.want(s.do(page, "a", "delete", ""), 303)
	s.want(s.do(page, "a", "delete", ""), 404, "To the overview")
}

// rowOf returns the box of a task in the list.
func (s *server) rowOf(page answer, id string) string {
	s.t.Helper()
	_, rest, has := strings.Cut(page.text, `id="s-`+id+`" name="task" value="`)
	if !has {
		s.t.Fatalf("no box of %s: %s", id, clip(page.text))
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

func TestTasks_ThatAreSelectedAreChangedAndEachSaysWhatBecameOfIt(t *testing.T) {
	s := serve(t)
	for _, id := range []string{"a/1", "a/2", "a/3", "a/4"} {
		s.asleep(id)
	}
	page := s.want(s.get("operator", "/ui/tasks?affinity=a"), 200, "Change those that are selected")
	s.wantNot(s.get("viewer", "/ui/tasks?affinity=a"), `type="checkbox" id=`, "/ui/changes", "/ui/matching")
	s.want(s.do(s.get("operator", "/ui/tasks/a~2"), "a/2", "suspend", ""), 303)
	s.want(s.do(s.get("operator", "/ui/tasks/a~3"), "a/3", "delete", ""), 303)
	form := url.Values{
		"operation": {"cancel"},
		"reason":    {"no <more>"},
		"next":      {"/ui/tasks?affinity=a"},
		"task":      {s.rowOf(page, "a/1"), s.rowOf(page, "a/2"), s.rowOf(page, "a/3")},
	}
	post := func() answer { return s.send("operator", http.MethodPost, "/ui/changes", form) }
	s.want(post(), 200, "1 of 3 done", "left as it is: it has changed", "refused: ", "a/1", "a/2", "a/3", `href="/ui/tasks?affinity=a"`)
	if is := s.see("a/1"); is.Status != task.Failure || is.Error.Message != "no <more>" {
		t.Errorf("%+v", is)
	}
	for _, id := range []string{"a/2", "a/4"} {
		if is := s.see(id); is.Status != task.Created {
			t.Errorf("%s: %+v", id, is)
		}
	}
	s.want(post(), 200, "0 of 3 done")
	form["task"] = nil
	s.want(post(), 400, "No task was selected")
	form["task"] = []string{"a/4"}
	s.want(post(), 400, "a version, a space, and the id")
	form["task"] = []string{s.rowOf(page, "a/4"), s.rowOf(page, "a/4")}
	s.want(post(), 400, "more than once")
	form["task"], form["next"] = []string{s.rowOf(page, "a/4")}, []string{"https://evil.example/"}
	s.wantNot(s.want(post(), 200, "1 of 1 done"), "evil.example")
	s.want(s.send("tenant", http.MethodPost, "/ui/changes", form), 200, "0 of 1 done", "a/4", "refused: ")
	form["task"] = []string{strings.Repeat("x", 200_000)}
	s.want(post(), 413)
}
