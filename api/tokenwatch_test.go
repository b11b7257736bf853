package api_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/api/token"
	"taskledger/bulk"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/task"
)

// changing holds the tokens of all callers, and changes some of them.
type changing struct {
	mu      sync.Mutex
	changed apitest.Secrets
}

func (c *changing) Find(secret string) *token.Token {
	c.mu.Lock()
	defer c.mu.Unlock()
	if is, ok := c.changed[secret]; ok {
		return is
	}
	return everybody[secret]
}

// change makes the token of a secret another one, or none.
func (c *changing) change(secret string, to *token.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changed == nil {
		c.changed = apitest.Secrets{}
	}
	c.changed[secret] = to
}

// begin asks, once the principal has no other request under way, and returns when it is under way where it may have
// one. A request that has waited for as long as it may is asked again.
func (s *server) begin(secret, method, path string, body any) <-chan answer {
	s.t.Helper()
	answers := make(chan answer, 1)
	go func() {
		for {
			asked := time.Now()
			if a := s.insist(secret, method, path, body); time.Since(asked) < api.MaxWait {
				answers <- a
				return
			}
		}
	}()
	testcluster.Await(s.t, "the request is under way",
		func() bool { return s.send(secret, "GET", "/openapi.json", nil).status == http.StatusTooManyRequests })
	return answers
}

// soon is much longer than it takes to see a change of the tokens, also on a busy machine, and shorter than the
// requests wait.
const soon = api.MaxWait / 2

func TestWait_EndsWhenTheTokenIsRevokedOrChanged(t *testing.T) {
	t.Parallel()
	tokens := &changing{}
	s, open := serve(t, func(c *api.Config) { c.Tokens, c.Limits.InFlight = tokens, 1 })
	s.submit("submitter", "w", "gate")
	revoked := s.begin("viewer", "GET", "/v1/tasks/w?wait=60s", nil)
	narrowed := s.begin("admin", "GET", "/v1/tasks/w?wait=60s", nil)
	submitted := s.begin("submitter", "POST", "/v1/tasks?wait=60s", `{"behavior":"gate","params":"x","id":"w"}`)
	holds := s.begin("operator", "GET", "/v1/tasks/w?wait=60s", nil)
	begun := time.Now()
	tokens.change("viewer", nil)
	tokens.change("submitter", nil)
	tokens.change("admin", &token.Token{Name: "ada", Role: token.Admin, Prefix: "t1."})
	tokens.change("operator", &token.Token{Name: "olga", Role: token.Operator}) // read again, and the same
	for _, a := range []answer{<-revoked, <-narrowed} {
		if s.want(a, 401, "revoked or changed"); a.problem() != "unauthorized" ||
			a.header.Get("WWW-Authenticate") == "" || strings.Contains(a.text, "RUNNING") {
			t.Errorf("%v %s", a.header, a.text)
		}
	}
	s.want(<-submitted, 202, `"id":"w"`) // it is accepted, whatever became of the token
	if took := time.Since(begun); took > soon {
		t.Errorf("ended after %s", took)
	}
	open()
	s.want(<-holds, 200, "SUCCESS")
}

// Revoking a token cuts off its streams, also one that nobody reads.
func TestStream_EndsWhenTheTokenIsRevoked(t *testing.T) {
	t.Parallel()
	tokens := &changing{}
	tokens.change("other", &token.Token{Name: "ada", Role: token.Viewer})
	s, _ := serve(t, func(c *api.Config) { c.Tokens, c.Limits.InFlight = tokens, 1 })
	params := strings.Repeat("x", 200<<10)
	for i := range 60 {
		body := map[string]any{"behavior": "gate", "id": fmt.Sprintf("one/%d", i), "params": params}
		s.want(s.insist("submitter", "POST", "/v1/tasks", body), http.StatusAccepted, "one/")
	}
	c := s.dial(t)
	const get = "GET /v1/export?shard=%d HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin\r\n\r\n"
	if _, err := fmt.Fprintf(c, get, events.TaskID("one/0").Shard(4)); err != nil {
		t.Fatal(err)
	}
	begins := bufio.NewReaderSize(c, 16)
	if line, err := begins.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	begun := time.Now()
	tokens.change("admin", nil)
	testcluster.Await(t, "the stream has ended",
		func() bool { return s.send("other", "GET", "/openapi.json", nil).status == 200 })
	if took := time.Since(begun); took > soon {
		t.Errorf("ended after %s", took)
	}
	whole := io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\n"), begins)
	resp, err := http.ReadResponse(bufio.NewReader(whole), nil)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("the stream is whole, with %d bytes: its reader did not stop it", n)
	}
}

// endless changes a task and then waits until it is told to stop.
type endless struct {
	operations.Direct
	begun chan struct{}
}

func (e endless) Each(
	ctx context.Context, _ task.Filter, _ task.Operation, _ bulk.Options,
) iter.Seq2[bulk.Report, error] {
	return func(yield func(bulk.Report, error) bool) {
		if !yield(bulk.Report{Matched: 1, Changed: 1, Cursor: "c"}, nil) {
			return
		}
		close(e.begun)
		<-ctx.Done()
		yield(bulk.Report{Matched: 1, Changed: 1, Cursor: "c"}, ctx.Err())
	}
}

// A change of many tasks says in its last line why it ends, and where it goes on for another token.
func TestChangeMatching_SaysThatTheTokenWasRevoked(t *testing.T) {
	t.Parallel()
	tokens, begun := &changing{}, make(chan struct{})
	s, _ := serve(t, func(c *api.Config) {
		c.Tokens, c.Client = tokens, endless{c.Client.(operations.Direct), begun}
	})
	go func() {
		<-begun
		tokens.change("operator", nil)
	}()
	a := s.want(s.send("operator", "POST", "/v1/tasks:change-matching",
		`{"operation":"retry","filter":{"status":"FAILURE"}}`), 200, "")
	line := a.last(t)
	if p, _ := line["problem"].(map[string]any); line["cursor"] != "c" || line["done"] != false ||
		p["status"] != float64(401) {
		t.Errorf("%s", a.text)
	}
}
