package main_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"taskledger/cmd/node/internal/connect"
	"taskledger/events"
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
