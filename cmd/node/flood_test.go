package main_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/internal/repeat"
)

// flood keeps so many connections to an address until ctx ends, and counts how many it has made. Every other one has sent
// the half of a request.
func flood(ctx context.Context, network, address string, many int, made *atomic.Int64) {
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			for ctx.Err() == nil {
				if c, err := (&net.Dialer{}).DialContext(ctx, network, address); err == nil {
					made.Add(1)
					if i%2 == 0 {
						_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: ")) // it may have been cut
					}
					end := context.AfterFunc(ctx, func() { c.Close() })
					for one := make([]byte, 512); err == nil; {
						_, err = c.Read(one)
					}
					end()
					c.Close()
				}
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond): // a connection that was cut is made again
				}
			}
		})
	}
	all.Wait()
}

// answers asks over a connection of its own, and reports whether there was an answer, which must be the right one.
func answers(t *testing.T, url, token string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	answer, err := client.Do(r)
	if err != nil {
		t.Log(err)
		return false
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", url, answer.Status)
	}
	return true
}

// A flood of connections to any listener of a node with few files neither ends the node nor keeps out requests with a token.
func TestServe_WithFewFilesLivesThroughFloodsOfEveryListener(t *testing.T) {
	t.Parallel()
	repeat.Busy(t)
	const many = 1200
	long, most := time.Duration(repeat.Times(2, 60))*time.Second, 20*time.Second
	if repeat.Whole() {
		most = 2 * time.Second
	}
	dir := t.TempDir()
	plain := command(context.Background(), dir, "serve", "--api", "127.0.0.1:0", "--store-listen", "127.0.0.1:0",
		"--metrics", "127.0.0.1:0")
	limited := exec.Command("/bin/sh", append([]string{"-c", `ulimit -n 1024 && exec "$0" "$@"`}, plain.Args...)...)
	limited.Dir, limited.Env = plain.Dir, plain.Env
	n := start(t, limited)
	at := advertised(t, dir)
	port, err := os.ReadFile(filepath.Join(dir, "taskledger-data", "nats-port"))
	if err != nil {
		t.Fatal(err)
	}
	host := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		return u.Host
	}
	for name, listener := range map[string][2]string{
		"api":     {"tcp", host(apiOf(t, n))},
		"store":   {"tcp", host(storeOf(t, n))},
		"metrics": {"tcp", host(metricsOf(t, n))},
		"socket":  {"unix", strings.TrimPrefix(at.API[0], "unix:")},
		"nats":    {"tcp", net.JoinHostPort("127.0.0.1", string(port))},
	} {
		flooded, end := context.WithCancel(t.Context())
		var flooding sync.WaitGroup
		var made atomic.Int64
		flooding.Go(func() { flood(flooded, listener[0], listener[1], many, &made) })
		var worst time.Duration
		for begun := time.Now(); time.Since(begun) < long || made.Load() < many; {
			began := time.Now()
			for !answers(t, at.URL+"/v1/nodes", at.Token) { // a busy node may not have read it before it was displaced
				select {
				case <-n.ended:
					t.Fatalf("%s: the node has ended: %s", name, n.stderr.String())
				default:
				}
				if time.Since(began) > patience {
					t.Fatalf("%s: no request with a token was answered within %s", name, patience)
				}
			}
			worst = max(worst, time.Since(began))
			time.Sleep(100 * time.Millisecond) // it must not be the flood itself
		}
		end()
		flooding.Wait()
		if worst > most {
			t.Errorf("%s: a request with a token took %s", name, worst)
		}
		t.Logf("%s: a request with a token took %s at most", name, worst)
		task := fmt.Sprintf(`{"behavior":"noop","id":%q}`, "after/"+name)
		status, text := call(t, http.DefaultClient, "POST", at.URL+"/v1/tasks?wait=30s", at.Token, task)
		if status != http.StatusOK || !strings.Contains(text, "SUCCESS") {
			t.Errorf("after %s: %d %s", name, status, text)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
