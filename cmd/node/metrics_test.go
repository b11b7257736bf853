package main_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// page returns what is served at a URL.
func page(t *testing.T, url string) (status int, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestMetrics_TellWhatStatsTell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--metrics", "127.0.0.1:0", "--name", "a")
	url := ""
	for _, line := range n.printed {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), "metrics  "); found {
			url = rest
		}
	}
	if url == "" {
		t.Fatalf("printed %q", n.printed)
	}
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
