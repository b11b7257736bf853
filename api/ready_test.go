package api_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/internal/testcluster"
)

// probe asks as a probe does, by an address.
func (s *server) probe(path, token string) answer {
	s.t.Helper()
	return s.send(token, "GET", path, nil, "Host", "10.1.2.3:7400")
}

func TestReady_TellsEverybodyYesOrNoAndATokenWhyNot(t *testing.T) {
	var why atomic.Value
	why.Store("")
	s, _ := serve(t, func(c *api.Config) { c.Ready = func() string { return why.Load().(string) } })
	for _, path := range []string{"/v1/health", "/v1/ready"} {
		s.want(s.probe(path, ""), 200, `{"status":"ok"}`)
	}
	why.Store("the node drains")
	s.want(s.probe("/v1/health", ""), 200, `{"status":"ok"}`)
	s.want(s.probe("/v1/ready", ""), 503, `{"status":"not ready"}`)
	s.want(s.probe("/v1/ready", "nobody's"), 503, `{"status":"not ready"}`)
	s.want(s.probe("/v1/ready", "viewer"), 503, "the node drains")
}

// While it drains, who waits is answered, and the listener goes on: probes learn that the node is not ready.
func TestDrain_EndsWhoWaitsAndAnswersOn(t *testing.T) {
	s, _ := serve(t, nil)
	s.submit("submitter", "slow", "gate")
	waits := make(chan answer, 1)
	go func() { waits <- s.send("viewer", "GET", "/v1/tasks/slow?wait=60s", nil) }()
	testcluster.Await(t, "the task runs", func() bool {
		return strings.Contains(s.send("viewer", "GET", "/v1/tasks/slow", nil).text, "RUNNING")
	})
	begun := time.Now()
	s.api.Drain()
	s.want(<-waits, 202, "slow")
	s.want(s.probe("/v1/ready", ""), 200, "ok")
	s.want(s.send("viewer", "GET", "/v1/tasks/slow?wait=60s", nil), 202, "slow")
	if took := time.Since(begun); took > 50*time.Second {
		t.Errorf("who waits is held up for %s, of the 60 s it asked for", took)
	}
	s.want(s.send("submitter", "POST", "/v1/tasks", map[string]any{"behavior": "noop"}), 202, "id")
}
