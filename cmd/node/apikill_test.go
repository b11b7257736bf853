package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"taskledger/internal/testcluster"
)

// apiOf returns the URL at which a node says that it serves the API.
func apiOf(t *testing.T, n *node) string {
	t.Helper()
	for _, line := range n.printed {
		if is, url, _ := strings.Cut(strings.TrimSpace(line), "  "); is == "api" {
			return strings.TrimSpace(url)
		}
	}
	t.Fatalf("no API: %q", n.printed)
	return ""
}

// keyed is a client that submits under keys to nodes that come and go.
type keyed struct {
	http   *http.Client
	token  string
	mu     sync.Mutex
	urls   []string
	turn   atomic.Int64
	answer atomic.Int64 // so many came
}

func (k *keyed) moved(at int, url string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.urls[at] = url
}

// submit repeats a submit under a key, at one node after the other, until its outcome is there. It returns the id of
// the task.
func (k *keyed) submit(ctx context.Context, key string) (id string, err error) {
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		k.mu.Lock()
		url := k.urls[k.turn.Add(1)%int64(len(k.urls))]
		k.mu.Unlock()
		r, err := http.NewRequestWithContext(ctx, "POST", url+"/v1/tasks?wait=10s", strings.NewReader(`{"behavior":"noop"}`))
		if err != nil {
			return "", err
		}
		r.Header.Set("Authorization", "Bearer "+k.token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
		resp, err := k.http.Do(r)
		if err != nil { // the node is gone, or is not there yet
			continue
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case err != nil:
			continue
		case resp.StatusCode == http.StatusOK:
			var a struct{ ID, Status string }
			if err := json.Unmarshal(text, &a); err != nil || a.Status != "SUCCESS" {
				return "", fmt.Errorf("key %s: %s: %w", key, text, err)
			}
			k.answer.Add(1)
			return a.ID, nil
		case resp.StatusCode != http.StatusAccepted && resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != http.StatusTooManyRequests:
			return "", fmt.Errorf("key %s: %d %s", key, resp.StatusCode, text)
		}
	}
	return "", ctx.Err()
}

// Whoever repeats a request under its key until it is answered has one task, and one answer, whichever nodes die
// meanwhile.
func TestAPI_EveryKeyIsOneTaskWhileNodesAreKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := serve(t, dir, "--api", "127.0.0.1:0")
	const clients, each = 200, 3
	k := &keyed{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}, urls: make([]string, 3), token: must(t, dir, "token", "new", "c", "--role", "submitter")}
	defer k.http.CloseIdleConnections()
	k.moved(0, apiOf(t, first))
	data := filepath.Join(dir, "taskledger-data")
	joined := func(at int) *node {
		n := serve(t, dir, "--join", data, "--name", string(rune('a'+at)), "--api", "127.0.0.1:0", "--api-tokens", filepath.Join(data, "tokens.json"))
		k.moved(at, apiOf(t, n))
		return n
	}
	nodes := []*node{nil, joined(1), joined(2)}
	testcluster.Await(t, "the token is known", func() bool {
		status, _ := call(t, k.http, "GET", k.urls[0]+"/v1/tasks/none", k.token, "")
		return status != http.StatusUnauthorized
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	var ids [clients * each]string
	g, ctx := errgroup.WithContext(ctx)
	for c := range clients {
		g.Go(func() error {
			for i := range each {
				key := fmt.Sprintf("key-%d-%d", c, i)
				id, err := k.submit(ctx, key)
				if err != nil {
					return err
				}
				again, err := k.submit(ctx, key)
				if err != nil || again != id {
					return fmt.Errorf("key %s is task %s, and then %s: %w", key, id, again, err)
				}
				ids[c*each+i] = id
			}
			return nil
		})
	}
	for i := 1; i < len(nodes); i++ {
		testcluster.Await(t, "answers come", func() bool { return k.answer.Load() > int64(i*clients/2) || ctx.Err() != nil })
		nodes[i].signal(os.Kill)
		nodes[i].wait(t)
		nodes[i] = joined(i)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	distinct := map[string]bool{}
	for _, id := range ids {
		distinct[id] = true
	}
	tasks := strings.Count(must(t, dir, "list", "--limit", "10000", "-o", "json"), `"behavior":"noop"`)
	if len(distinct) != len(ids) || tasks != len(ids) {
		t.Errorf("%d keys are %d ids and %d tasks", len(ids), len(distinct), tasks)
	}
}
