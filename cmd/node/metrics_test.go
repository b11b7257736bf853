package main_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// page returns what is served at a URL.
func page(t *testing.T, url string) (status int, text string) {
	t.Helper()
	status, text, err := fetch(t, url)
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

func fetch(t *testing.T, url string) (status int, text string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(body), err
}

// metricsOf returns the URL at which a node says that its metrics are.
func metricsOf(t *testing.T, n *node) string {
	t.Helper()
	for _, line := range n.printed {
		if url, found := strings.CutPrefix(strings.TrimSpace(line), "metrics  "); found {
			return url
		}
	}
	t.Fatalf("printed %q", n.printed)
	return ""
}

func TestMetrics_TellWhatStatsTell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--metrics", "127.0.0.1:0", "--name", "a")
	url := metricsOf(t, n)
	for range 3 {
		must(t, dir, "submit", "noop", "--wait")
	}
	status, text := page(t, url)
	if status != http.StatusOK || !strings.Contains(text, `taskledger_attempts_succeeded_total{behavior="noop"} 3`+"\n") || !strings.Contains(text, "taskledger_ready 1\n") ||
		!strings.Contains(text, "taskledger_bus_connected 1\n") {
		t.Errorf("status %d: %s", status, text)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "taskledger_") {
			t.Errorf("a name of another: %s", line)
		}
	}
	if status, text := page(t, strings.Replace(url, "/metrics", "/readyz", 1)); status != http.StatusOK || text != "ready\n" {
		t.Errorf("status %d: %s", status, text)
	}
	all := objects(t, must(t, dir, "stats", "-o", "json"))
	if len(all) != 1 || all[0]["behavior"] != "noop" || all[0]["counters"].(map[string]any)["attempts_succeeded_total"] != 3.0 {
		t.Errorf("stats: %v", all)
	}
	if table := must(t, dir, "stats"); !strings.Contains(table, "noop") {
		t.Errorf("stats: %s", table)
	}
}

// While a node drains, readiness says so, and whoever asks whether it lives is told that it does, until it ends.
// From the signal on nothing new should come here, also while the API still has a request under way.
func TestMetrics_SayThatTheNodeDrainsWhileRequestsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--metrics", "127.0.0.1:0", "--api", "127.0.0.1:0")
	ready := strings.Replace(metricsOf(t, n), "/metrics", "/readyz", 1)
	at := advertised(t, dir)
	c, err := net.Dial("tcp", strings.TrimPrefix(at.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n", at.Token); err != nil {
		t.Fatal(err)
	}
	from := bufio.NewReader(c)
	if asks, err := from.ReadString('\n'); err != nil || !strings.Contains(asks, " 100 ") { // the request is under way
		t.Fatalf("asked for the body by %q, %v", asks, err)
	}
	if _, err := from.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if status, _, err := fetch(t, ready); err != nil || status != http.StatusOK {
		t.Fatalf("readiness is %d, %v", status, err)
	}
	must(t, dir, "submit", "sleep", `{"duration":"10s"}`, "--id", "runs") // the drain goes on until it has ended
	eventually(t, "it runs", func() bool { return field(t, dir, "runs", "status") == "RUNNING" })
	n.signal(syscall.SIGTERM)
	asked := 0
	eventually(t, "the node says that it drains", func() bool {
		status, text, err := fetch(t, ready)
		if err == nil {
			asked++
		}
		return err != nil || status == http.StatusServiceUnavailable && strings.Contains(text, "the node drains")
	})
	if status, text, err := fetch(t, ready); err != nil || status != http.StatusServiceUnavailable || asked == 0 {
		t.Errorf("while the body of a request has not come, readiness is %d: %s, %v", status, text, err)
	}
	if _, err := fmt.Fprint(c, `{"behavior":"noop"} `); err != nil {
		t.Errorf("the request under way: %v", err)
	}
	answer, _ := from.ReadString('\n')
	if !strings.Contains(answer, " 202 ") {
		t.Errorf("the request under way is answered %q", answer)
	}
	if state := n.wait(t); !state.Success() {
		t.Errorf("ended with %s: %s", state, n.stderr.String())
	}
}

func TestMetrics_AreServedUntilTheNodeHasDrained(t *testing.T) {
	t.Parallel()
	const grace = 2 * time.Second
	dir := t.TempDir()
	n := serve(t, dir, "--metrics", "127.0.0.1:0", "--grace", grace.String())
	ready := strings.Replace(metricsOf(t, n), "/metrics", "/readyz", 1)
	lives := strings.Replace(metricsOf(t, n), "/metrics", "/healthz", 1)
	must(t, dir, "submit", "sleep", `{"duration":"1h"}`, "--id", "long")
	eventually(t, "it runs", func() bool { return field(t, dir, "long", "status") == "RUNNING" })
	began := time.Now()
	n.signal(syscall.SIGTERM)
	drains := false
	eventually(t, "nothing is served", func() bool {
		status, text, err := fetch(t, ready)
		drains = drains || err == nil && status == http.StatusServiceUnavailable && strings.Contains(text, "the node drains")
		if err == nil && drains && status != http.StatusServiceUnavailable {
			t.Errorf("after %s readiness is %d: %s", time.Since(began), status, text)
		}
		status, _, unserved := fetch(t, lives)
		if unserved == nil && status != http.StatusOK {
			t.Errorf("after %s health is %d", time.Since(began), status)
		}
		return unserved != nil
	})
	if took := time.Since(began); !drains || took < grace {
		t.Errorf("it is served for %s, and says that the node drains: %t", took, drains)
	}
	if state := n.wait(t); !state.Success() {
		t.Errorf("ended with %s: %s", state, n.stderr.String())
	}
}
