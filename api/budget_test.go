package api_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/stores"
	"taskledger/internal/testcluster"
)

// A token of the least role, and connections that read nothing of 4 MB each, take nothing from others.
func TestServe_ReadersThatReadNothingTakeNoListFromOthers(t *testing.T) {
	t.Parallel()
	s, _ := serve(t, func(c *api.Config) {
		c.Routes, c.ErrorFormats = stores.Routes(c.Client.Stores()), []api.ErrorFormat{stores.ErrorFormat()}
	})
	params := strings.Repeat("x", 200<<10)
	for i := range 20 {
		body := map[string]any{"behavior": "gate", "id": fmt.Sprintf("big/%d", i), "params": params}
		s.want(s.insist("submitter", "POST", "/v1/tasks", body), http.StatusAccepted, "big/")
	}
	added := s.send("submitter", "POST", "/store/s/update", `{"clientid":1,"adds":[{"group":"g","data":"x"}]}`)
	s.want(added, 200, "tasks")
	const readers = 8
	for range readers {
		c := s.dial(t)
		if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		const get = "GET /v1/tasks?limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\n\r\n"
		if _, err := fmt.Fprint(c, get); err != nil {
			t.Fatal(err)
		}
	}
	testcluster.Await(t, "all readers are served", func() bool { return s.api.State().Requests == readers })
	for _, path := range []string{
		"/v1/tasks?limit=1",
		"/v1/tasks?limit=1000",
		"/v1/tasks/big~0/history",
		"/v1/behaviors",
		"/store/s/groups",
		"/store/s/group/g",
		"/store/s/task/1",
	} {
		ran := ownTime()
		s.want(s.send("operator", "GET", path, nil), 200, "")
		took := ran()
		t.Logf("%s: %s", path, took)
		if took > 10*time.Second {
			t.Errorf("%s: answered after %s", path, took)
		}
	}
}
