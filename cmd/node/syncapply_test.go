//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// collectionsOf returns a file of collections that do nothing: names, each with so many attempts.
func collectionsOf(attempts int, names ...string) string {
	text := "sources:\n  shop:\n    driver: noop\n    collections:\n"
	for _, name := range names {
		text += fmt.Sprintf("      - {name: %s, attempts: %d}\n", name, attempts)
	}
	return text
}

// applied counts how often a node has come to an end with its file of collections.
func (n *node) applied() int {
	return strings.Count(n.stderr.String(), `"the file of collections was applied`)
}

// recorded returns how many files are recorded as applied.
func recorded(t *testing.T, dir string) int {
	t.Helper()
	return len(objects(t, must(t, dir, "store", "list", "file", "--store-name", "sync.applied", "-o", "json")))
}

// set returns how often a collection was set.
func set(t *testing.T, dir, id string) int {
	t.Helper()
	return strings.Count(must(t, dir, "history", id+"/schedule:"), "ScheduleDefined")
}

func TestSyncApply_MakesTheCollectionsThoseOfAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--exec-allow", "echo")
	file := filepath.Join(dir, "sync.yaml")
	const stock = "      - {name: stock, driver: exec, program: echo, args: [a line]}\n"
	write(t, file, collectionsOf(3, "orders", "prices")+stock)
	const first = "applied: 3 added, 0 changed, 0 removed, 0 as they were"
	if got := must(t, dir, "sync", "apply", file); !strings.HasSuffix(got, first) {
		t.Error(got)
	}
	if got := must(t, dir, "sync", "apply", file); got != "nothing changed: all 3 collections are as the file says" {
		t.Error(got)
	}
	id := must(t, dir, "sync", "run", "shop", "stock", "--key", "k", "--wait")
	again := must(t, dir, "sync", "run", "shop", "stock", "--key", "k")
	if again != id || !strings.HasPrefix(id, "shop_stock_") {
		t.Errorf("run %s, and then %s", id, again)
	}
	for _, of := range [][]string{{"shop", "stock"}, {id}} {
		if got := must(t, dir, append([]string{"sync", "logs"}, of...)...); !strings.HasSuffix(got, " a line") {
			t.Errorf("log of %q: %s", of, got)
		}
	}
	must(t, dir, "sync", "pause", "shop", "prices")
	if got := must(t, dir, "sync", "list", "shop"); !strings.Contains(got, "SUCCESS") || !strings.Contains(got, "paused") {
		t.Error(got)
	}
	// A collection that is taken out keeps its runs and its history.
	write(t, file, collectionsOf(4, "prices"))
	const second = "applied: 0 added, 1 changed, 2 removed, 0 as they were"
	if got := must(t, dir, "sync", "apply", file); !strings.HasSuffix(got, second) {
		t.Error(got)
	}
	if got := must(t, dir, "sync", "logs", id); !strings.HasSuffix(got, " a line") {
		t.Error(got)
	}
	if got := must(t, dir, "history", "shop_stock/schedule:"); !strings.Contains(got, "ScheduleEnded") {
		t.Error(got)
	}
	if got := must(t, dir, "sync", "list"); !strings.Contains(got, "paused") || strings.Count(got, "\n") != 1 {
		t.Error(got)
	}
	// The history says which file has set what.
	if got := must(t, dir, "history", "shop_prices/schedule:"); strings.Count(got, "sync.yaml, by sync apply") != 2 {
		t.Error(got)
	}
}

func TestSyncApply_RefusesAndWarnsByWhatNodesHave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serve(t, dir, "--name", "first")
	file := filepath.Join(dir, "sync.yaml")
	text := collectionsOf(1, "orders") + "      - {name: stock, driver: exec, program: echo}\n"
	write(t, file, text)
	r := run(t, dir, "sync", "apply", file)
	if r.code != 5 || !strings.Contains(r.err, `shop_stock: program: no node has the program "echo" (--exec-allow)`) {
		t.Errorf("%+v", r)
	}
	write(t, filepath.Join(dir, "bad.yaml"), text+"      - {name: orders}\n")
	r = run(t, dir, "sync", "apply", "bad.yaml")
	if r.code != 2 || !strings.Contains(r.err, "\nbad.yaml:7:16: sources.shop.collections[2].name: ") &&
		!strings.HasPrefix(r.err, "bad.yaml:7:16: sources.shop.collections[2].name: ") {
		t.Errorf("%+v", r)
	}
	r = run(t, dir, "serve", "--sync", "bad.yaml", "--data", "other")
	if r.code != 2 || !strings.Contains(r.err, "bad.yaml:7:16: ") {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(dir, "other")); err == nil {
		t.Error("a node with a bad file has opened its data")
	}
	if got := must(t, dir, "sync", "list"); strings.Contains(got, "shop") {
		t.Errorf("a file that is refused makes %s", got)
	}
	serve(t, dir, "--join", filepath.Join(dir, "taskledger-data"), "--name", "second", "--exec-allow", "echo")
	eventually(t, "both nodes are seen", func() bool { return strings.Contains(must(t, dir, "nodes"), "second") })
	r = run(t, dir, "sync", "apply", file)
	if r.code != 0 || !strings.Contains(r.err, `warning: shop_stock: program: no program "echo" (--exec-allow) on first`) {
		t.Errorf("%+v", r)
	}
}

// All nodes apply a new file at a hang-up: each collection is set once, and the file is recorded once. None drains.
func TestServe_AHangUpOfThreeNodesAppliesTheirFileOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "sync.yaml")
	write(t, file, collectionsOf(1, "orders", "prices"))
	with := []string{"--sync", file, "--log-level", "info"}
	nodes := []*node{serve(t, dir, slices.Concat(with, []string{"--name", "a"})...)}
	for _, name := range []string{"b", "c"} {
		joins := slices.Concat(with, []string{"--join", filepath.Join(dir, "taskledger-data"), "--name", name})
		nodes = append(nodes, serve(t, dir, joins...))
	}
	all := func(times int) func() bool {
		return func() bool {
			for _, n := range nodes {
				if n.applied() < times {
					return false
				}
			}
			return true
		}
	}
	eventually(t, "all have applied the file", all(1))
	write(t, file, collectionsOf(2, "orders", "prices", "stock"))
	for _, n := range nodes {
		n.signal(syscall.SIGHUP)
	}
	eventually(t, "all have applied the new one", all(2))
	if n := recorded(t, dir); n != 2 {
		t.Errorf("%d files are recorded", n)
	}
	for id, want := range map[string]int{"shop_orders": 2, "shop_prices": 2, "shop_stock": 1} {
		if got := set(t, dir, id); got != want {
			t.Errorf("%s was set %d times, want %d", id, got, want)
		}
	}
	write(t, file, "sources: [\n")
	nodes[0].signal(syscall.SIGHUP)
	eventually(t, "it tells of the bad file", func() bool {
		return strings.Contains(nodes[0].stderr.String(), "what was stays")
	})
	for _, n := range nodes {
		if log := n.stderr.String(); strings.Contains(log, "draining") {
			t.Errorf("a hang-up ends a node: %s", log)
		}
	}
	must(t, dir, "sync", "run", "shop", "stock", "--wait")
}

// A node that was away with the file of last week turns nothing back.
func TestServe_AnOldFileTurnsNothingBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "sync.yaml")
	old := collectionsOf(1, "orders")
	write(t, file, old)
	n := serve(t, dir, "--sync", file, "--log-level", "info")
	eventually(t, "it is applied", func() bool { return n.applied() == 1 })
	n.stop(t)
	n = serve(t, dir)
	write(t, filepath.Join(dir, "new.yaml"), collectionsOf(1, "prices"))
	must(t, dir, "sync", "apply", "new.yaml")
	n.stop(t)
	n = serve(t, dir, "--sync", file)
	eventually(t, "it warns", func() bool { return strings.Contains(n.stderr.String(), "turns nothing back") })
	if got := must(t, dir, "sync", "list"); strings.Contains(got, "orders") || !strings.Contains(got, "prices") {
		t.Error(got)
	}
	must(t, dir, "sync", "apply", file)
	if got := must(t, dir, "sync", "list"); !strings.Contains(got, "orders") || strings.Contains(got, "prices") {
		t.Error(got)
	}
}
