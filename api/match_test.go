package api_test

import (
	"strconv"
	"testing"
)

// version returns the version of a task as If-Match takes it.
func (s *server) version(t *testing.T, id string) string {
	t.Helper()
	return strconv.Quote(s.want(s.send("viewer", "GET", "/v1/tasks/"+id, nil), 200, "version").get(t, "version").(string))
}

// Whoever has seen a task as it is no longer changes nothing, and is told so.
func TestOperate_UnderAConditionLeavesATaskThatHasChanged(t *testing.T) {
	s, open := serve(t, nil)
	s.submit("submitter", "t1.a", "gate")
	s.want(s.insist("operator", "POST", "/v1/tasks/t1.a/suspend", nil), 204, "")
	suspended := s.version(t, "t1.a")
	post := func(verb, seen string) answer {
		return s.send("operator", "POST", "/v1/tasks/t1.a/"+verb, nil, "If-Match", seen)
	}
	s.want(post("resume", suspended), 204, "")
	resumed := s.version(t, "t1.a")
	for _, verb := range []string{"cancel", "suspend", "resume", "retry", "run-now"} {
		got := s.want(post(verb, suspended), 412, "t1.a")
		if got.problem() != "changed" {
			t.Errorf("%s: %s", verb, got.text)
		}
	}
	s.want(s.send("operator", "DELETE", "/v1/tasks/t1.a", nil, "If-Match", suspended), 412, "changed")
	if now := s.version(t, "t1.a"); now != resumed {
		t.Errorf("it has changed: %s, it was %s", now, resumed)
	}
	s.want(post("suspend", resumed), 204, "")
	s.want(post("suspend", resumed), 412, "changed")
	s.want(post("suspend", `"999`+s.version(t, "t1.a")[2:]), 412, "changed")
	open()
	s.want(s.insist("operator", "POST", "/v1/tasks/t1.a/resume", nil), 204, "")
	s.want(s.send("viewer", "GET", "/v1/tasks/t1.a?wait=30s", nil), 200, "SUCCESS")
	ended := s.version(t, "t1.a")
	s.want(post("retry", ended), 204, "")
	s.want(s.send("viewer", "GET", "/v1/tasks/t1.a?wait=30s", nil), 200, "SUCCESS")
	s.want(s.send("operator", "DELETE", "/v1/tasks/t1.a", nil, "If-Match", ended), 412, "changed")
	s.want(s.send("operator", "DELETE", "/v1/tasks/t1.a", nil, "If-Match", s.version(t, "t1.a")), 204, "")
	s.want(post("retry", ended), 404, "not-found")
	s.want(s.send("sleeper", "DELETE", "/v1/tasks/t1.a", nil, "If-Match", ended), 404, "not-found")
}

func TestChange_OfVersionsLeavesTheTasksThatHaveChanged(t *testing.T) {
	s, open := serve(t, nil)
	defer open()
	s.submit("submitter", "a", "gate")
	s.submit("submitter", "b", "gate")
	a, b := s.version(t, "a"), s.version(t, "b")
	s.want(s.insist("operator", "POST", "/v1/tasks/a/suspend", nil), 204, "")
	change := func(versions string) answer {
		ask := `{"operation":"suspend","ids":["a","b"],"versions":` + versions + `}`
		return s.send("operator", "POST", "/v1/tasks:change", ask)
	}
	got := s.want(change("["+a+","+b+"]"), 200, `"id":"a","problem"`)
	s.want(got, 200, "problem:changed")
	s.want(s.send("viewer", "GET", "/v1/tasks/b", nil), 200, "suspended")
	for wrong, says := range map[string]string{
		"[" + a + "]":         "one for each",
		"[" + a + `,"1.0.0"]`: "version of a task",
		`["x","y"]`:           "versions",
	} {
		if got := s.want(change(wrong), 400, says); got.get(t, "field") == nil {
			t.Errorf("%s: %s", wrong, got.text)
		}
	}
}
