package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"taskledger/engine"
	"taskledger/engine/local"
)

// otherBoot makes a data directory look as if the machine had been started since it was used.
func otherBoot(t *testing.T, data string) {
	t.Helper()
	name := filepath.Join(data, "run")
	text, err := os.ReadFile(name)
	var of map[string]any
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	if err == nil {
		of["boot"] = "another"
		delete(of, "sum") // a file of before there was one
		text, err = json.Marshal(of)
	}
	if err = errors.Join(err, os.WriteFile(name, text, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// What a crash of the machine may have lost is told before a node has settled it, and for ever after.
func TestFiles_VerifyAndShardsTellWhatACrashOfTheMachineMayHaveLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serveFiles(t, dir, "--durability", "opportunistic", "--shards", "1")
	submitTo(t, dir, `{"behavior":"noop","id":"first"}`)
	n.signal(syscall.SIGKILL)
	n.wait(t)
	if r := run(t, dir, "verify"); r.code != 0 || strings.Contains(r.err, "may lack") {
		t.Errorf("after a crash of the process alone: %+v", r)
	}
	otherBoot(t, filepath.Join(dir, "taskledger-data"))
	if r := run(t, dir, "verify", "--with-archive"); r.code != 1 || !strings.Contains(r.err, "may be missing at the end") {
		t.Errorf("verify: %+v", r)
	}
	if r := run(t, dir, "history", "first"); r.code != 0 || !strings.Contains(r.err, "may lack entries that were answered last") {
		t.Errorf("history: %+v", r)
	}
	serveFiles(t, dir)
	if r := run(t, dir, "shards"); r.code != 0 || !strings.Contains(r.out, "LOSSES") {
		t.Errorf("shards: %+v", r)
	}
	r := run(t, dir, "verify")
	if r.code != 0 || !strings.Contains(r.err, "entries may have been lost by the store, whose numbers are not used again") ||
		!strings.Contains(r.out, "lost entries before, or given up: in 1 of them") {
		t.Errorf("verify once it is settled: %+v", r)
	}
}

func TestFiles_InUseByAProgramWithoutAnAPIAreToldAsSuch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, err := local.StartWith(t.Context(), local.Config{
		Dir:  filepath.Join(dir, "hold"),
		Node: engine.NodeConfig{Log: slog.New(slog.DiscardHandler)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, args := range []string{"list", "get first", "verify", "history first"} {
		r := run(t, dir, append(strings.Fields(args), "--data", "hold", "--timeout", "3s")...)
		named := strings.Contains(r.err, "in use, by a program without an API") && strings.Contains(r.err, "hold")
		if r.code != 5 || !named || strings.Contains(r.err, "start one") {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

func TestFiles_ThatAreDamagedAreToBeRestored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveFiles(t, dir, "--shards", "1").stop(t)
	const segment = "log-0000000000000001"
	if err := os.WriteFile(filepath.Join(dir, "taskledger-data", segment), []byte(strings.Repeat("no journal at all ", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, dir, "verify")
	if r.code != 1 || !strings.Contains(r.err, "remedy: restore "+segment) || strings.Contains(r.err, "`shards") {
		t.Errorf("verify: %+v", r)
	}
}

// A node whose store is in files takes what others do, by its API.
func TestFiles_TakeABatchOfMoreThanABodyOfTheAPI(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serveFiles(t, dir, "--shards", "1")
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, `{"behavior":"noop","id":"big-%d","params":{"text":"%s"}}`+"\n", i, strings.Repeat("x", 250_000))
	}
	if err := os.WriteFile(filepath.Join(dir, "big.jsonl"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, dir, "submit", "--batch", "big.jsonl"); r.code != 0 || strings.Count(r.out, "big-") != 30 {
		t.Errorf("submit: code %d, %.2000s, %.2000s", r.code, r.out, r.err)
	}
	r := run(t, dir, "submit", "--batch", "big.jsonl", "--key", "once")
	if r.code == 0 || !strings.Contains(r.err, "requests of one key") {
		t.Errorf("under a key: code %d, %.2000s", r.code, r.err)
	}
}

// Ids that may have been given after a backup are not given again, wherever it is restored to.
func TestRestore_OfWhatHasGoneOnSinceRecordsALossPerShard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, "--store", "files", "--shards", "2", "--data", "files")
	must(t, dir, "submit", "noop", "--id", "first", "--wait", "--data", "files")
	n.stop(t)
	must(t, dir, "copy", "--from", "files", "--to", "again", "--restored")
	must(t, dir, "copy", "--from", "files", "--to", "again", "--restored") // it is there
	must(t, dir, "restore", "files", "--restored", "--data", "back")
	for store, data := range map[string]string{"files": "again", "etcd": "back"} {
		serve(t, dir, "--store", store, "--data", data)
		must(t, dir, "submit", "noop", "--id", "next", "--wait", "--data", data)
		r := run(t, dir, "verify", "--with-archive", "--data", data)
		if told := strings.Count(r.err, "the store was restored"); r.code != 0 || told != 2 {
			t.Errorf("%s: %d shards tell of it: %+v", store, told, r)
		}
	}
	if r := run(t, dir, "backup", "other", "--restored"); r.code != 2 {
		t.Errorf("of a backup, which goes back to no time: %+v", r)
	}
}
