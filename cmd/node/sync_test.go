package main_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"taskledger/collections/taskjson"
	"taskledger/tasklog"
)

// listening has a node listen for the API, and for collections at the root of another address.
var listening = []string{"--api", "127.0.0.1:0", "--sync-listen", "127.0.0.1:0"}

// syncOf returns the URL at which a node says that it serves collections.
func syncOf(t *testing.T, n *node) string {
	t.Helper()
	for _, line := range n.printed {
		if at, is := strings.CutPrefix(strings.TrimSpace(line), "sync "); is {
			return strings.TrimSpace(at)
		}
	}
	t.Fatalf("printed %q", n.printed)
	return ""
}

// setCollections makes the collections of the cluster on the default directory in dir those of a file.
func setCollections(t *testing.T, dir, file string) {
	t.Helper()
	path := filepath.Join(dir, "sync.yaml")
	write(t, path, file)
	must(t, dir, "sync", "apply", path)
}

// syncing is a client of collections.
type syncing struct {
	*testing.T
	http        *http.Client
	root, token string
}

func newSyncing(t *testing.T, root, token string) *syncing {
	s := &syncing{
		T:     t,
		http:  &http.Client{},
		root:  root,
		token: token,
	}
	t.Cleanup(s.http.CloseIdleConnections)
	return s
}

// ask reads the answer of a status, of 200 or 201, into a value.
func (s *syncing) ask(method, path string, into any) {
	s.Helper()
	status, text := call(s.T, s.http, method, s.root+path, s.token, "")
	if status != 200 && status != 201 {
		s.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.Fatalf("%s %s: %s: %v", method, path, text, err)
	}
}

// run asks for a run of a collection, and returns its id.
func (s *syncing) run(source, collection string) string {
	s.Helper()
	var made struct {
		TaskID string `json:"task_id"`
	}
	s.ask("POST", "/tasks/?source="+source+"&collection="+collection, &made)
	return made.TaskID
}

// end waits for the end of a run, and returns its status.
func (s *syncing) end(id string) (is taskjson.Status) {
	s.Helper()
	eventually(s.T, id+" ends", func() bool {
		var told taskjson.Task
		s.ask("GET", "/tasks/"+id, &told)
		is = told.Status
		return is.Final()
	})
	return is
}

// lines returns the lines of level info that a run has written.
func (s *syncing) lines(id string) (lines []string) {
	s.Helper()
	var told struct {
		Logs []struct{ Message, Level string }
	}
	s.ask("GET", "/tasks/"+id+"/logs", &told)
	for _, l := range told.Logs {
		if l.Level == "info" {
			lines = append(lines, l.Message)
		}
	}
	return lines
}

func TestSync_IsServedAtTheRootOfItsListener(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := syncOf(t, serve(t, dir, listening...))
	at := advertised(t, dir)
	client := &http.Client{}
	defer client.CloseIdleConnections()
	for _, c := range []struct {
		method, path, secret string
		status               int
		part                 string
	}{
		{"GET", "/schedules", at.Token, 200, `{"schedules":[]}`},
		{"GET", "/schedules/?token=" + at.Token, "", 200, `{"schedules":[]}`},
		{"GET", "/schedules?token=nobody", "", 401, `"message":"`},
		{"POST", "/tasks/?source=shop&collection=orders", at.Token, 400, `"field":"source"`},
		{"GET", "/tasks/shop_orders_7a5f6f5c-2f27-5d3e-9d55-0b8f8a3c1e01", at.Token, 404, `"error":"`},
		{"GET", "/v1/nodes", at.Token, 404, `"message":"`},
	} {
		status, text := call(t, client, c.method, root+c.path, c.secret, "")
		if status != c.status || !strings.Contains(text, c.part) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, text)
		}
	}
	if status, text := call(t, client, "GET", at.URL+"/sync/schedules?token="+at.Token, "", ""); status != 401 {
		t.Errorf("the API takes a secret from a query: %d %s", status, text)
	}
}

// What a node keeps no logs of is unavailable, and no empty list.
func TestSync_LogsOfANodeThatKeepsNoneAreUnavailable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, append([]string{"--logs", "none"}, listening...)...)
	setCollections(t, dir, "sources: {shop: {collections: [{name: orders, driver: noop}]}}")
	s := newSyncing(t, syncOf(t, n), advertised(t, dir).Token)
	id := s.run("shop", "orders")
	if got := s.end(id); got != taskjson.Success {
		t.Errorf("the run is %s", got)
	}
	status, text := call(t, s.http, "GET", s.root+"/tasks/"+id+"/logs", s.token, "")
	if status != 503 || !strings.Contains(text, "no logs are kept here") {
		t.Errorf("%d %s", status, text)
	}
}

// Runs of the collections of the example leave copies that are equal to what they are of.
func TestSync_TheExampleLeavesEqualCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	example, err := filepath.Abs("../../examples/sync.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"shop/orders.csv":  "order,price\n1,20\n",
		"shop/archive.csv": strings.Repeat("0,0\n", 100_000),
		"house/meters.csv": "meter,reading\nyesterday,7\n",
	}
	for _, folder := range []string{"from/shop", "from/house", "to/house"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		write(t, filepath.Join(dir, "from", name), text)
	}
	program := filepath.Join(dir, "sync-meters")
	const copies = "#!/bin/sh\n" +
		"test \"$1 $2 $TZ\" = '--since yesterday Europe/Berlin' && cp IN/from/house/meters.csv IN/to/house/\n"
	write(t, program, strings.ReplaceAll(copies, "IN", dir))
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	roots := []string{"--checksum-root", "from", "--sync-root", "to", "--exec-allow", "sync-meters=" + program + " {}"}
	n := serve(t, dir, append(append(roots, "--exec-env", "TZ"), listening...)...)
	must(t, dir, "sync", "apply", example)
	s := newSyncing(t, syncOf(t, n), advertised(t, dir).Token)
	for _, c := range [][2]string{{"shop", "orders"}, {"shop", "archive"}, {"house", "meters"}} {
		id := s.run(c[0], c[1])
		if got := s.end(id); got != taskjson.Success {
			_, text := call(t, s.http, "GET", s.root+"/tasks/"+id+"/logs", s.token, "")
			t.Errorf("the run of %s is %s: %s", c, got, text)
		}
	}
	for name, text := range files {
		if got, err := os.ReadFile(filepath.Join(dir, "to", name)); err != nil || string(got) != text {
			t.Errorf("%s has %.100q, %v", name, got, err)
		}
	}
}

// Output that is no text, has no end, or knows no bound is told as lines, of whichever run it is.
func TestSync_LogsTellWhateverAProgramWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := serve(t, dir, append([]string{"--exec-allow", "sh"}, listening...)...)
	const of = "sources: {shop: {driver: exec, program: sh, collections: [" +
		`{name: binary, args: [-c, "printf 'a\\377b\\n\\000'"]}, ` +
		`{name: endless, args: [-c, "printf 'no end'"]}, ` +
		`{name: long, args: [-c, "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo after"]}, ` +
		`{name: silent, args: [-c, "true"]}]}}`
	setCollections(t, dir, of)
	s := newSyncing(t, syncOf(t, n), advertised(t, dir).Token)
	const cut = " [cut]"
	for name, want := range map[string][]string{
		"binary":  {"a\uFFFDb", "\x00"},
		"endless": {"no end"},
		"long":    {strings.Repeat("x", tasklog.MaxLineBytes-len(cut)) + cut, "after"},
		"silent":  nil,
	} {
		id := s.run("shop", name)
		if got := s.end(id); got != taskjson.Success {
			t.Errorf("%s is %s", name, got)
		}
		if lines := s.lines(id); !slices.Equal(lines, want) {
			t.Errorf("%s has %d lines: %.100q, want %.100q", name, len(lines), lines, want)
		}
	}
}
