package main_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"taskledger/cmd/node/internal/connect"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/tasklog"
)

// What a program writes is in NATS once its task has ended, unless the node is to keep none.
func TestServe_KeepsWhatProgramsWrite(t *testing.T) {
	t.Parallel()
	const params = `{"program":"sh","args":["-c","echo one; echo two; echo no >&2"]}`
	written := []string{"error no", "info one", "info two"}
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"by default": {nil, written},
		"few":        {[]string{"--logs", "jetstream", "--log-bytes", "2000000", "--log-age", "1h"}, written},
		"none":       {[]string{"--logs", "none"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			serve(t, dir, append([]string{"--exec-allow", "sh"}, c.args...)...)
			must(t, dir, "submit", "exec", params, "--wait", "--id", "x")
			if got := linesOf(t, dir, "x"); !slices.Equal(got, c.want) {
				t.Errorf("the log has %q, want %q", got, c.want)
			}
		})
	}
}

// linesOf returns the lines of the first attempt of a task, sorted. Its node runs on the default directory in dir.
func linesOf(t *testing.T, dir string, id events.TaskID) (lines []string) {
	t.Helper()
	at := connect.Addresses{Existing: true, Log: slog.New(slog.DiscardHandler)}
	link, err := connect.In(t.Context(), filepath.Join(dir, "taskledger-data"), at)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := callerOver(t, link)
	x, err := c.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	q := tasklog.Query{
		Shard:    uint16(id.Shard(link.Store.Cluster().Shards)),
		Life:     x.Details.Life,
		Attempts: []tasklog.Begun{{Number: 1}},
	}
	page, err := tasklog.ReadTask(t.Context(), link.Logs, q)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Lines {
		lines = append(lines, fmt.Sprint(l.Level, " ", l.Text))
	}
	slices.Sort(lines)
	return lines
}

// What a program writes is shown while it runs, on the command line and over HTTP, and followed to its end.
func TestLogs_AreShownAndFollowedToTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--api", "127.0.0.1:0", "--exec-allow", "sh")
	at := advertised(t, dir)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	const program = `{"program":"sh","args":["-c","echo one; while [ ! -e GO ]; do sleep 0.1; done; echo two; echo no >&2"],"dir":"DIR"}`
	must(t, dir, "submit", "exec", strings.Replace(program, "DIR", dir, 1), "--id", "x")
	status, text := call(t, client, "GET", at.URL+"/v1/tasks/x/logs?wait=60s", at.Token, "")
	if status != 200 || !strings.Contains(text, `"message":"one"`) || strings.Contains(text, `"ended"`) {
		t.Errorf("while it runs: %d %s", status, text)
	}
	if got := objects(t, must(t, dir, "logs", "x", "-o", "json")); len(got) != 1 || got[0]["message"] != "one" {
		t.Errorf("while it runs: %v", got)
	}
	followed := make(chan result, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	go func() { followed <- finish(t, command(ctx, dir, "logs", "x", "--follow", "-o", "json")) }()
	if err := os.WriteFile(filepath.Join(dir, "GO"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := <-followed
	var lines []string
	for _, l := range objects(t, r.out) {
		lines = append(lines, fmt.Sprint(l["level"], " ", l["message"]))
	}
	if slices.Sort(lines); r.code != 0 || !slices.Equal(lines, []string{"error no", "info one", "info two"}) {
		t.Errorf("followed: %q, exit code %d: %s", lines, r.code, r.err)
	}
	status, text = call(t, client, "GET", at.URL+"/v1/tasks/x/logs.txt?level=error", at.Token, "")
	if status != 200 || !strings.HasSuffix(text, " error 1 no\n") || strings.Count(text, "\n") != 1 {
		t.Errorf("as text: %d %q", status, text)
	}
	if r := run(t, dir, "logs", "nobody"); r.code != 3 {
		t.Errorf("of no task: exit code %d: %s", r.code, r.err)
	}
}

// A node is killed with the servers inside it while a program writes: of what was stored nothing is lost, and the lines
// of the next attempt stand apart.
func TestLogs_OfANodeThatIsKilledHaveBothAttemptsApart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"--exec-allow", "sh", "--ttl", "3s"}
	n := serve(t, dir, args...)
	const program = `{"program":"sh","args":["-c","echo begins; while [ ! -e GO ]; do echo goes on; sleep 0.02; done; echo ends"],"dir":"DIR"}`
	must(t, dir, "submit", "exec", strings.Replace(program, "DIR", dir, 1), "--id", "x")
	lines := func() (all []map[string]any) { return objects(t, must(t, dir, "logs", "x", "-o", "json")) }
	var before []map[string]any
	testcluster.Await(t, "lines that are stored", func() bool {
		before = lines()
		return len(before) > 20
	})
	n.signal(syscall.SIGKILL)
	n.wait(t)
	serve(t, dir, args...)
	if err := os.WriteFile(filepath.Join(dir, "GO"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "wait", "x")
	byAttempt := map[float64][]map[string]any{}
	for _, l := range lines() {
		attempt := l["attempt"].(float64)
		byAttempt[attempt] = append(byAttempt[attempt], l)
	}
	first, second := byAttempt[1], byAttempt[2]
	if len(byAttempt) != 2 || len(first) < len(before) || !reflect.DeepEqual(first[:len(before)], before) {
		t.Errorf("of %d lines that were stored %d are left: %v", len(before), len(first), first)
	}
	for attempt, all := range byAttempt {
		for i, l := range all {
			if l["missing"] != nil || l["number"] != float64(i+1) || (l["message"] == "begins") != (i == 0) {
				t.Errorf("line %d of attempt %g is %v", i+1, attempt, l)
			}
		}
	}
	if n := len(second); n < 2 || second[n-1]["message"] != "ends" {
		t.Errorf("the second attempt wrote %v", second)
	}
}

// A node that keeps no logs says so, and does not answer that there are no lines.
func TestLogs_OfANodeThatKeepsNoneAreUnavailable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--api", "127.0.0.1:0", "--logs", "none")
	at := advertised(t, dir)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	must(t, dir, "submit", "noop", "--id", "x", "--wait")
	if status, text := call(t, client, "GET", at.URL+"/v1/tasks/x/logs", at.Token, ""); status != 503 ||
		!strings.Contains(text, "no logs are kept here") {
		t.Errorf("%d %s", status, text)
	}
}
