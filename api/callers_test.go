package api_test

import (
	"testing"

	"taskledger/api"
)

func TestRequest_OneCallerCannotTakeTheServerFromTheOthers(t *testing.T) {
	s, _ := serve(t, func(c *api.Config) { c.Limits = api.Limits{PerSecond: 1, Burst: 8, InFlight: 2} })
	s.submit("submitter", "slow", "gate")
	var answers []chan answer
	for range 3 {
		a := make(chan answer, 1)
		answers = append(answers, a)
		go func() { a <- s.send("viewer", "GET", "/v1/tasks/slow?wait=1s", nil) }()
	}
	statuses := map[int]int{}
	for _, a := range answers {
		got := <-a
		if statuses[got.status]++; got.status == 429 &&
			(got.header.Get("Retry-After") != "1" || got.problem() != "too-many") {
			t.Errorf("%v %s", got.header, got.text)
		}
	}
	if statuses[202] != 2 || statuses[429] != 1 {
		t.Errorf("two may be under way: %v", statuses)
	}
	refused := 0
	for range 12 {
		if got := s.send("viewer", "GET", "/openapi.json", nil); got.status == 429 {
			refused++
		}
	}
	if refused == 0 || refused > 10 {
		t.Errorf("%d of 12 refused", refused)
	}
	s.want(s.send("operator", "GET", "/openapi.json", nil), 200, "openapi")
}
