package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/collections/taskjson"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
)

// sessionTTL is the TTL of the sessions of the nodes.
const sessionTTL = 3 * time.Second

// attempts is a collection whose program writes a line, starts others, waits for a file, and writes another one. Each
// attempt holds a pipe of its own as long as one of its processes lives.
const attempts = `
sources:
  my_shop:
    collections:
      - name: new_orders
        driver: exec
        program: sh
        dir: DIR
        args:
          - -c
          - |
            trap '' TERM
            n=1; if [ -e began1 ]; then n=2; fi; : >began$n
            exec 3>pipe$n; sleep 600 3>&3 & echo begin $n; echo begun >&3
            while [ ! -e GO$n ]; do sleep 0.05; done
            echo end $n; kill -9 $!
`

// twice is a run whose first node is lost in the middle of it.
type twice struct {
	*syncing
	dir, id string
	first   *node // runs the first attempt
	pipes   [3]*os.File
}

// newTwice starts a node that has the servers and runs no programs, and one that is in the middle of a run.
func newTwice(t *testing.T) *twice {
	dir := t.TempDir()
	apart := []string{"--name", "a", "--sync-workers", "0", "--ttl", sessionTTL.String()}
	a := serve(t, dir, append(apart, listening...)...)
	w := &twice{dir: dir, syncing: newSyncing(t, syncOf(t, a), advertised(t, dir).Token)}
	for n := range w.pipes {
		if err := syscall.Mkfifo(w.at("pipe", n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.first = w.node("b")
	setCollections(t, dir, strings.ReplaceAll(attempts, "DIR", dir))
	w.id = w.run("my_shop", "new_orders")
	w.begun(1)
	eventually(t, "the first line is stored", func() bool { return len(w.lines(w.id)) == 1 })
	return w
}

func (w *twice) at(name string, attempt int) string {
	return filepath.Join(w.dir, fmt.Sprint(name, attempt))
}

// node starts a node that runs programs.
func (w *twice) node(name string) *node {
	w.Helper()
	own := []string{"--name", name, "--exec-allow", "sh", "--ttl", sessionTTL.String()}
	return serve(w.T, w.dir, append(own, "--join", "taskledger-data")...)
}

// begun waits until the program of an attempt runs.
func (w *twice) begun(attempt int) {
	w.Helper()
	pipe, err := os.Open(w.at("pipe", attempt))
	if err == nil {
		w.Cleanup(func() { pipe.Close() })
		err = pipe.SetReadDeadline(time.Now().Add(timeout))
	}
	var said string
	if err == nil {
		_, err = fmt.Fscanln(pipe, &said)
	}
	if err != nil {
		w.Fatalf("attempt %d: %v", attempt, err)
	}
	w.pipes[attempt] = pipe
}

func (w *twice) release(attempt int) {
	w.Helper()
	write(w.T, w.at("GO", attempt), "")
}

// events returns the kinds of the events of the run, and when each was recorded.
func (w *twice) events() (kinds []string, at []time.Time) {
	w.Helper()
	id, err := taskjson.Read(w.id)
	if err != nil {
		w.Fatal(err)
	}
	for line := range strings.Lines(must(w.T, w.dir, "history", string(id), "-o", "json")) {
		var ev struct {
			Kind string
			At   time.Time
		}
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			w.Fatalf("%s: %v", line, err)
		}
		kinds, at = append(kinds, ev.Kind), append(at, ev.At)
	}
	return kinds, at
}

// logged returns the lines of level info of one attempt.
func (w *twice) logged(attempt int) (lines []string) {
	w.Helper()
	id, err := taskjson.Read(w.id)
	if err != nil {
		w.Fatal(err)
	}
	text := must(w.T, w.dir, "logs", string(id), "--attempt", fmt.Sprint(attempt), "-o", "json")
	for _, l := range objects(w.T, text) {
		if l["level"] == "info" {
			lines = append(lines, fmt.Sprint(l["message"]))
		}
	}
	return lines
}

// wantTwice fails unless the run was made again, within so long after its node was lost, and ended once.
func (w *twice) wantTwice(lost time.Time) {
	w.Helper()
	kinds, at := w.events()
	if got := strings.Join(kinds, " "); got != "Created Started Lost Started Succeeded" {
		w.Fatalf("events %s", got)
	}
	within := sessionTTL + time.Second
	if !testkit.Whole() {
		within *= 10
	}
	took := at[3].Sub(lost)
	w.Logf("made again after %s", took)
	if took > within {
		w.Errorf("it runs again after %s, want %s at most", took, within)
	}
	if lines := w.logged(2); !slices.Equal(lines, []string{"begin 2", "end 2"}) {
		w.Errorf("the second attempt has %q", lines)
	}
}

// A run whose node is killed is made again elsewhere. Nothing of its programs is left, and both attempts keep their
// lines.
func TestSync_ARunOfAKilledNodeIsMadeAgainAndLeavesNoProgram(t *testing.T) {
	t.Parallel()
	w := newTwice(t)
	lost := time.Now()
	w.first.signal(os.Kill)
	w.first.wait(t)
	wantGone(t, w.pipes[1])
	w.node("c")
	w.begun(2)
	w.release(2)
	if got := w.end(w.id); got != taskjson.Success {
		t.Errorf("the run is %s", got)
	}
	wantGone(t, w.pipes[2])
	w.wantTwice(lost)
	if lines := w.logged(1); !slices.Equal(lines, []string{"begin 1"}) {
		t.Errorf("the first attempt has %q", lines)
	}
	if lines := w.lines(w.id); !slices.Equal(lines, []string{"begin 1", "begin 2", "end 2"}) {
		t.Errorf("both have %q", lines)
	}
}

// The node of a run stands still past its session, while the program of the run succeeds. When it goes on, the run has
// been made again, and that success counts for nothing.
func TestSync_ASuccessThatComesAfterTheSessionIsRefused(t *testing.T) {
	t.Parallel()
	w := newTwice(t)
	session := func() (id string) {
		for _, n := range objects(t, must(t, w.dir, "nodes", "-o", "json")) {
			if n["node"] == "b" {
				id = fmt.Sprint(n["session"])
			}
		}
		return id
	}
	old := session()
	lost := time.Now()
	w.first.signal(syscall.SIGSTOP)
	w.release(1)
	wantGone(t, w.pipes[1])
	second := w.node("c")
	w.begun(2)
	w.first.signal(syscall.SIGCONT)
	testcluster.Await(t, "b is back as a new node", func() bool {
		id := session()
		return id != "" && id != old
	})
	if kinds, _ := w.events(); strings.Join(kinds, " ") != "Created Started Lost Started" {
		t.Errorf("events %q", kinds)
	}
	w.release(2)
	if got := w.end(w.id); got != taskjson.Success {
		t.Errorf("the run is %s", got)
	}
	w.wantTwice(lost)
	if lines := w.lines(w.id); !slices.Contains(lines, "begin 1") || lines[len(lines)-1] != "end 2" {
		t.Errorf("both have %q", lines)
	}
	for _, n := range []*node{w.first, second} {
		n.stop(t)
	}
}
