package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/api"
	"taskledger/api/apitest"
	"taskledger/api/operations"
	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/engine"
	"taskledger/internal/testcluster"
)

var everybody = apitest.Everybody(nil)

// server is an API on a node of its own.
type server struct {
	t    *testing.T
	node *engine.Node
	api  *api.API
	url  string
	http *http.Client
	stop func() // drains
}

var gate = behaviors.Define[string, string]("gate", nil)

// hourly waits as gate does, and runs again an hour after each success.
var hourly = behaviors.Define("hourly", &behaviors.Rules[string, string]{
	AfterSuccess: func(_, _ string, now time.Time) time.Time { return now.Add(time.Hour) },
})

// serve starts a node and its API. What the behaviors gate and hourly wait for ends with the test, or by open.
func serve(t *testing.T, configure func(*api.Config)) (s *server, open func()) {
	t.Helper()
	c := testcluster.New(t, testcluster.Options{NoNATS: true, Shards: 4})
	opened := make(chan struct{})
	open = sync.OnceFunc(func() { close(opened) })
	pass := func(ctx context.Context, p string) (string, error) {
		select {
		case <-opened:
			if p == "fail" {
				return "", behaviors.Cancel(errors.New("as asked"))
			}
			return p, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	member := c.StartNode("a", nil, builtin.Noop(), builtin.Sleep(), gate.Bind(pass), hourly.Bind(pass))
	cfg := api.Config{Client: operations.Direct{Client: member.Client}, Tokens: everybody, Version: "test"}
	if configure != nil {
		configure(&cfg)
	}
	a, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, l) }()
	transport := &http.Transport{}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s = &server{
		t:    t,
		node: member.Node,
		api:  a,
		url:  "http://" + l.Addr().String(),
		http: &http.Client{Transport: transport, CheckRedirect: noRedirect},
	}
	s.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(func() {
		open()
		s.stop()
		transport.CloseIdleConnections()
	})
	return s, open
}

// answer holds an answer of the server.
type answer struct {
	status int
	header http.Header
	text   string
}

// problem is the type of the problem that an answer is, without what all have in front.
func (a answer) problem() string {
	var p struct{ Type string }
	_ = json.Unmarshal([]byte(a.text), &p)
	return strings.TrimPrefix(p.Type, "urn:taskledger:problem:")
}

func (a answer) get(t *testing.T, field string) any {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(a.text), &all); err != nil {
		t.Fatalf("%s: %v", a.text, err)
	}
	return all[field]
}

// insist repeats send while the cluster answers that it is busy, or late, as it does on a busy machine: a plan has one
// second, and most answers 10 s. It repeats, too, while other requests of the principal are under way.
func (s *server) insist(secret, method, path string, body any) answer {
	s.t.Helper()
	for until := time.Now().Add(2 * time.Minute); ; {
		a := s.send(secret, method, path, body)
		busy := a.status == http.StatusTooManyRequests || a.status == http.StatusGatewayTimeout ||
			strings.Contains(a.text, `"status":503`)
		if !busy || time.Now().After(until) {
			return a
		}
	}
}

// send asks with a token. A body is sent as JSON; header is name and value by turns.
func (s *server) send(secret, method, path string, body any, header ...string) answer {
	s.t.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			s.t.Fatal(err)
		}
		reader = bytes.NewReader(data)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, s.url+path, reader)
	if err != nil {
		s.t.Fatal(err)
	}
	if reader != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(header); i += 2 {
		switch header[i] {
		case "Host":
			r.Host = header[i+1]
		case "Content-Type":
			r.Header.Set(header[i], header[i+1])
		default:
			r.Header.Add(header[i], header[i+1])
		}
	}
	resp, err := s.http.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// dial opens a connection to the server, which ends with the test.
func (s *server) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func (s *server) want(a answer, status int, part string) answer {
	s.t.Helper()
	if a.status != status || !strings.Contains(a.text, part) {
		s.t.Errorf("status %d, want %d and %q: %.300s", a.status, status, part, a.text)
	}
	return a
}

func (s *server) submit(secret, id, behavior string) {
	s.t.Helper()
	body := map[string]any{"behavior": behavior, "id": id, "params": paramsOf(behavior)}
	s.want(s.send(secret, "POST", "/v1/tasks", body), http.StatusAccepted, fmt.Sprintf("%q", id))
}

func paramsOf(behavior string) any {
	if behavior == "gate" || behavior == "hourly" {
		return "x"
	}
	return map[string]any{}
}
