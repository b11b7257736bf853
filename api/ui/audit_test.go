package ui_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"taskledger/api/apitest"
)

// ask has the API do something, which must succeed.
func (s *server) ask(secret, path, body string) {
	s.t.Helper()
	if got := apitest.Ask(s.api, secret, http.MethodPost, path, body); got.Code >= 300 {
		s.t.Fatalf("%s: %d %s", path, got.Code, got.Body)
	}
}

func TestAudit_OfAnEmptyClusterHasReadAll(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/audit"), 200, "Nothing was found.", "All that the journal and its archive hold was read.")
	s.want(s.get("viewer", "/ui/settings"), 200, "Nothing is paused", "Nothing was found.")
}

func TestAudit_TellsWhoHasDoneWhatNewestFirst(t *testing.T) {
	s := serve(t)
	s.begin("sleep", "long", `{"duration":"1h"}`)
	s.ask("operator", "/v1/tasks/long/suspend", `{"reason":"<first>"}`)
	s.ask("admin", "/v1/tasks/long/cancel", `{"reason":"second"}`)
	got := s.want(s.get("viewer", "/ui/audit"), 200, "Suspended", "CancelRequested", "olga", "ada", "&lt;first&gt;", `href="/ui/tasks/long"`)
	if strings.Index(got.text, "CancelRequested") > strings.Index(got.text, "Suspended</td>") {
		t.Errorf("the older one comes first: %s", clip(got.text))
	}
	s.wantNot(got, "<first>", ">Created<", ">Started<")
	s.wantNot(s.get("viewer", "/ui/audit?by=ada"), "Suspended</td>")
	s.want(s.get("viewer", "/ui/audit?by=nobody"), 200, "Nothing was found.", `value="nobody"`)
	s.want(s.get("viewer", "/ui/audit?before=noon"), 400, "before")
}

func TestAudit_ComesInPagesThatLeaveNothingOut(t *testing.T) {
	s := serve(t)
	const all = 250
	for i := range all / 2 {
		s.ask("operator", "/v1/behaviors/noop/pause", fmt.Sprintf(`{"reason":"n%d"}`, i))
		s.ask("operator", "/v1/behaviors/noop/unpause", "")
	}
	s.want(s.get("viewer", "/ui/settings"), 200, "The newest 200 are shown; there may be older ones.")
	seen, pages := map[string]bool{}, 0
	for path := "/ui/audit"; path != "" && pages < 5; pages++ {
		got := s.want(s.get("viewer", path), 200)
		for _, row := range regexp.MustCompile(`<tr id="p-[^"]*`).FindAllString(got.text, -1) {
			seen[row] = true
		}
		if path = ""; strings.Contains(got.text, "Older events") {
			_, rest, _ := strings.Cut(got.text, `<p><a class="button" href="`)
			path, _, _ = strings.Cut(rest, `"`)
		}
	}
	if len(seen) != all || pages != 2 {
		t.Errorf("%d events on %d pages", len(seen), pages)
	}
}
