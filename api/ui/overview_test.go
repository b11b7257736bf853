package ui_test

import (
	"testing"

	"taskledger/api/apitest"
)

func TestOverview_OfAnEmptyClusterSaysHowToBegin(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/"), 200, "Nothing has been submitted yet", "taskledger submit")
}

func TestOverview_TellsWhatNeedsAttention(t *testing.T) {
	s := serve(t)
	s.want(s.get("viewer", "/ui/"), 200, "Nothing.")
	s.submit("noop", "a", "{}")
	if got := apitest.Ask(s.api, "operator", "POST", "/v1/behaviors/noop/pause", `{"reason":"the disk is full"}`); got.Code != 204 {
		t.Fatal(got.Body)
	}
	s.want(s.get("viewer", "/ui/"), 200, "Paused: ", "the disk is full", "olga", `href="/ui/tasks?behavior=noop"`)
	s.wantNot(s.get("tenant", "/ui/"), "the disk is full", "Session")
}
