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

	"taskledger/internal/testkit"
)

// flood keeps so many connections to an address until ctx ends, and counts how many it has made. Every other one has
// sent the half of a request.
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

// listener is one of a node, and what is asked of it while it is flooded.
type listener struct {
	network, address string
	asked            string // URL; "" = it does not speak HTTP
}

// answers asks a listener over a connection of its own, and reports whether there was an answer, which must be the
// right one.
func (l listener) answers(t *testing.T, token string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.asked, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, l.network, l.address)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}, Timeout: timeout}
	answer, err := client.Do(r)
	if err != nil {
		t.Log(err)
		return false
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("%s: %s", l.asked, answer.Status)
	}
	return true
}

// A flood of connections to any listener of a node with few files neither ends the node nor keeps out requests, be it
// those of a token at the API or those of the flooded listener.
func TestServe_WithFewFilesLivesThroughFloodsOfEveryListener(t *testing.T) {
	t.Parallel()
	testkit.Busy(t)
	const many = 1200
	long, most := time.Duration(testkit.Times(2, 60))*time.Second, 20*time.Second
	if testkit.Whole() {
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
	tcp := func(page, path string) listener {
		u, err := url.Parse(page)
		if err != nil {
			t.Fatal(err)
		}
		return listener{"tcp", u.Host, u.Scheme + "://" + u.Host + path}
	}
	api := tcp(apiOf(t, n), "/v1/nodes")
	for name, flooded := range map[string]listener{
		"api":     api,
		"store":   tcp(storeOf(t, n), "/groups"),
		"metrics": tcp(metricsOf(t, n), "/healthz"),
		"socket":  {"unix", strings.TrimPrefix(at.API[0], "unix:"), "http://localhost/v1/nodes"},
		"nats":    {"tcp", net.JoinHostPort("127.0.0.1", string(port)), ""},
	} {
		lasts, end := context.WithCancel(t.Context())
		var flooding sync.WaitGroup
		var made atomic.Int64
		flooding.Go(func() { flood(lasts, flooded.network, flooded.address, many, &made) })
		asked := []listener{api}
		if flooded.asked != "" && flooded != api {
			asked = append(asked, flooded)
		}
		var worst time.Duration
		for begun := time.Now(); time.Since(begun) < long || made.Load() < many; {
			for _, l := range asked {
				began := time.Now()
				for !l.answers(t, at.Token) { // a busy node may not have read it before it was displaced
					select {
					case <-n.ended:
						t.Fatalf("%s: the node has ended: %s", name, n.stderr.String())
					default:
					}
					if time.Since(began) > timeout {
						t.Fatalf("%s: %s has not answered within %s", name, l.asked, timeout)
					}
				}
				worst = max(worst, time.Since(began))
			}
			time.Sleep(100 * time.Millisecond) // it must not be the flood itself
		}
		end()
		flooding.Wait()
		if worst > most {
			t.Errorf("%s: a request took %s", name, worst)
		}
		t.Logf("%s: a request took %s at most", name, worst)
		task := fmt.Sprintf(`{"behavior":"noop","id":%q}`, "after/"+name)
		status, text := call(t, http.DefaultClient, "POST", at.URL+"/v1/tasks?wait=30s", at.Token, task)
		if status != http.StatusOK || !strings.Contains(text, "SUCCESS") {
			t.Errorf("after %s: %d %s", name, status, text)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
