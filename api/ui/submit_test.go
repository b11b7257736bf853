package ui_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"taskledger/task"
)

func formOfTask(id string) url.Values {
	return url.Values{
		"behavior":   {"noop"},
		"params":     {"{}"},
		"task":       {id},
		"delay":      {""},
		"not_before": {""},
		"priority":   {""},
		"key":        {""},
	}
}

func TestSubmit_MakesATaskAndShowsIt(t *testing.T) {
	s := serve(t)
	page := s.want(s.get("submitter", "/ui/submit"), 200, `<option value="noop">`, `<option value="sleep">`, `name="key" value="`)
	s.wantNot(page, "aria-invalid")
	form := formOfTask("a/1")
	form.Set("delay", "1h30m")
	form.Set("priority", "7")
	got := s.want(s.send("submitter", http.MethodPost, "/ui/submit", form), 303)
	if to := got.header.Get("Location"); to != "/ui/tasks/a~1" {
		t.Error(to)
	}
	is := s.see("a/1")
	if is.Priority != 7 || is.ScheduleNotBefore-is.CreatedAt < 5_399_000 || is.Creator != "sam" {
		t.Errorf("%+v", is)
	}
	form = formOfTask("a/2")
	at := time.Now().Add(48 * time.Hour).UTC().Truncate(time.Minute)
	form.Set("not_before", at.Add(time.Hour).Format("2006-01-02 15:04"))
	s.want(s.send("submitter", http.MethodPost, "/ui/submit", form, "Cookie", "taskledger-zone=Etc/GMT-1"), 303)
	if is := s.see("a/2").ScheduleNotBefore.Time(); !is.Equal(at) {
		t.Errorf("%s, want %s", is, at)
	}
	s.want(s.get("submitter", "/ui/submit", "Cookie", "taskledger-zone=Etc/GMT-1"), 200, "2026-11-23 17:00 in Etc/GMT-1")
	got = s.want(s.get("submitter", "/ui/submit"), 200, `<span class="nowrap">2026-11-23T17:00:00Z</span></span>`)
	s.wantNot(got, "17:00 in")
	form.Set("not_before", "tomorrow")
	s.want(s.send("submitter", http.MethodPost, "/ui/submit", form, "Cookie", "taskledger-zone=Etc/GMT-1"), 400, "in the zone Etc/GMT-1")
	s.want(s.get("viewer", "/ui/submit"), 403)
	s.want(s.send("viewer", http.MethodPost, "/ui/submit", form), 403)
}

// A form that is sent twice is one task, by its key.
func TestSubmit_TwiceIsOneTask(t *testing.T) {
	s := serve(t)
	form := formOfTask("")
	_, rest, _ := strings.Cut(s.get("submitter", "/ui/submit").text, `name="key" value="`)
	key, _, _ := strings.Cut(rest, `"`)
	form.Set("key", key)
	first := s.want(s.send("submitter", http.MethodPost, "/ui/submit", form), 303).header.Get("Location")
	if again := s.want(s.send("submitter", http.MethodPost, "/ui/submit", form), 303).header.Get("Location"); again != first || key == "" {
		t.Errorf("%s and %s", first, again)
	}
	form.Set("params", `{"other":1}`)
	s.want(s.send("submitter", http.MethodPost, "/ui/submit", form), 422, `name="key"`, "aria-invalid", "other")
}

func TestSubmit_KeepsWhatIsWrongAndNamesItsField(t *testing.T) {
	s := serve(t)
	for field, c := range map[string]struct{ text, says string }{
		"behavior":   {"no-such", "no-such"},
		"params":     {"{\n\"a\": <b>", "line 2"},
		"task":       {"a/b/c", "task id"},
		"delay":      {"soon", "1h30m"},
		"not_before": {"2026-11-23 17:00", "with its zone"},
		"priority":   {"high", "whole number"},
		"key":        {strings.Repeat("k", 250), "key"},
	} {
		form := formOfTask("x/1")
		form.Set(field, c.text)
		got := s.send("submitter", http.MethodPost, "/ui/submit", form)
		if got.status < 400 || got.status >= 500 {
			t.Errorf("%s: %d", field, got.status)
		}
		s.want(got, got.status, `aria-invalid="true"`, c.says, `value="x/1"`[:7])
		if field == "params" {
			s.want(got, got.status, "&#34;a&#34;: &lt;b&gt;")
		}
	}
	short := formOfTask("x/1")
	short.Set("delay", "0.5ms")
	s.want(s.send("submitter", http.MethodPost, "/ui/submit", short), 400, "whole milliseconds")
	both := formOfTask("x/1")
	both.Set("delay", "1h")
	both.Set("not_before", time.Now().Add(time.Hour).Format(time.RFC3339))
	s.want(s.send("submitter", http.MethodPost, "/ui/submit", both), 400, "want it or not_before")
	large := formOfTask("x/1")
	large.Set("params", `"`+strings.Repeat("x", 300<<10)+`"`)
	s.want(s.send("submitter", http.MethodPost, "/ui/submit", large), 413, "262144", "aria-invalid")
	large.Set("params", `"`+strings.Repeat("x", 1<<20)+`"`)
	s.want(s.send("submitter", http.MethodPost, "/ui/submit", large), 413)
	twice := formOfTask("x/1")
	twice["task"] = []string{"x/1", "x/2"}
	s.want(s.send("submitter", http.MethodPost, "/ui/submit", twice), 400, "more than once")
	s.want(s.send("tenant", http.MethodPost, "/ui/submit", formOfTask("other")), 403, "begin with t1.")
	s.want(s.send("sleeper", http.MethodPost, "/ui/submit", formOfTask("other")), 403, "not for the behavior")
	s.want(s.get("viewer", "/ui/tasks?affinity=x"), 200, "No task matches")
}

func TestSubmit_BeginsAsACopyOfATask(t *testing.T) {
	s := serve(t)
	s.submit("fails", "a/1", `"<b>why</b>"`)
	s.want(s.get("submitter", "/ui/tasks/a~1"), 200, `href="/ui/submit?like=a%2F1"`)
	s.wantNot(s.get("viewer", "/ui/tasks/a~1"), "/ui/submit")
	got := s.want(s.get("submitter", "/ui/submit?like=a%2F1"), 200, `value="fails"`, "why", "A copy of")
	s.wantNot(got, "<b>why", `name="task" value="a/1"`)
	s.want(s.get("submitter", "/ui/submit?like=none"), 404, "none")
	s.want(s.get("submitter", "/ui/submit?like=a%2Fb%2Fc"), 400, "like")
	s.want(s.get("tenant", "/ui/submit?like=a%2F1"), 404)
}

// Whoever opens the dashboard of an empty cluster runs a task with one button.
func TestOverview_OfAnEmptyClusterHasTheFormOfAFirstTask(t *testing.T) {
	s := serve(t)
	s.wantNot(s.want(s.get("viewer", "/ui/"), 200, "Nothing has been submitted yet"), `action="/ui/submit"`)
	s.want(s.get("submitter", "/ui/"), 200, `action="/ui/submit"`, `value="sleep"`)
	s.want(s.get("tenant", "/ui/"), 200, `value="t1.first"`)
	form := url.Values{"behavior": {"sleep"}, "params": {`{"duration":"1ms"}`}, "task": {"first"}}
	for range 2 {
		if to := s.want(s.send("submitter", http.MethodPost, "/ui/submit", form), 303).header.Get("Location"); to != "/ui/tasks/first" {
			t.Error(to)
		}
	}
	s.node.Await(t, "first")
	if is := s.see("first"); is.Status != task.Success || is.Runs != 1 {
		t.Errorf("%+v", is)
	}
	s.wantNot(s.get("submitter", "/ui/"), `action="/ui/submit"`)
}
