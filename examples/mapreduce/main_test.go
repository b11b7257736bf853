package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// runMain has this process, started again by a test, be the program, by its arguments.
const runMain = "RUN_MAPREDUCE"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// scene is a cluster of processes whose front serves the store and owns nothing, so that its owner can be killed alone.
type scene struct {
	t                *testing.T
	ctx              context.Context
	node             string // its program
	dir, data, texts string
	secret           string
	store            *store
	nodes            map[string]*process
}

// process is one that is killed at the end of the test at the latest.
type process struct {
	cmd       *exec.Cmd
	said      string        // until it was ready
	out, errs bytes.Buffer  // to be read when it has ended
	ended     chan struct{} // closed when all of its output was read and it was waited for
}

// build builds the node, without what a debugger wants.
func (s *scene) build() {
	s.t.Helper()
	s.node = filepath.Join(s.dir, "node")
	build := exec.CommandContext(s.ctx, "go", "build", "-ldflags=-s -w", "-o", s.node, "taskledger/cmd/node")
	if out, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("build: %v\n%s", err, out)
	}
}

// start starts a program and returns when it has printed a line that begins with until, if that is given.
func (s *scene) start(until, program string, args ...string) *process {
	s.t.Helper()
	p := &process{cmd: exec.CommandContext(s.ctx, program, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "MAPREDUCE_TOKEN="+s.secret, runMain+"=1")
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(p.ended)
		lines, said := bufio.NewScanner(out), until == ""
		for lines.Scan() {
			fmt.Fprintln(&p.out, lines.Text())
			if !said && strings.HasPrefix(lines.Text(), until) {
				said = true
				ready <- p.out.String()
			}
		}
		_ = p.cmd.Wait() // its state says it
	}()
	s.t.Cleanup(func() {
		if p.kill(); s.t.Failed() && p.errs.Len() > 0 {
			s.t.Logf("%s: %s", p.cmd, p.errs.String())
		}
	})
	if until == "" {
		return p
	}
	select {
	case p.said = <-ready:
	case <-p.ended:
		s.t.Fatalf("%s: %s", p.cmd, p.errs.String())
	}
	return p
}

// kill ends a process by SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func (s *scene) join(name string) {
	s.t.Helper()
	s.nodes[name] = s.start("Try", s.node, "serve", "--join", s.data, "--name", name, "--slots", "0", "--ttl", "3s", "--archive", "keep")
}

// run runs a command of the node's program.
func (s *scene) run(args ...string) string {
	s.t.Helper()
	var errs bytes.Buffer
	c := exec.CommandContext(s.ctx, s.node, append(args, "--data", s.data)...)
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		s.t.Fatalf("%q: %v: %s", args, err, errs.String())
	}
	return string(out)
}

// newScene starts a node with the servers and the listener of the store, and two others that can own its only shard.
func newScene(t *testing.T, texts string) *scene {
	t.Helper()
	dir, err := os.MkdirTemp("", "mr-") // a short path, for the socket of etcd
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	t.Cleanup(cancel)
	s := &scene{t: t, ctx: ctx, dir: dir, data: filepath.Join(dir, "data"), texts: texts, nodes: map[string]*process{}}
	s.build()
	if err := os.Mkdir(s.data, 0o700); err != nil {
		t.Fatal(err)
	}
	s.secret = strings.TrimSpace(s.run("token", "new", "mapreduce", "--role", "submitter", "--affinity-prefix", "store:default"))
	front := s.start("Try", s.node, "serve", "--data", s.data, "--name", "front", "--shards", "1", "--owner=false", "--slots", "0",
		"--api", "127.0.0.1:0", "--store-listen", "127.0.0.1:0", "--archive", "keep")
	_, after, _ := strings.Cut(front.said, "\n  store ")
	url, _, _ := strings.Cut(after, "\n")
	if s.store, err = newStore(strings.TrimSpace(url), s.secret); err != nil {
		t.Fatal(err)
	}
	s.join("b")
	s.join("c")
	return s
}

// owner is the node that owns the shard of the store, when there is one.
func (s *scene) owner() string {
	s.t.Helper()
	for s.ctx.Err() == nil {
		var shard struct{ Node, Problem string }
		if err := json.Unmarshal([]byte(s.run("shards", "-o", "json")), &shard); err != nil {
			s.t.Fatal(err)
		}
		if shard.Node != "" && shard.Problem == "" {
			return shard.Node
		}
	}
	s.t.Fatal("the shard has no owner")
	return ""
}

// claimed is a piece that a worker holds.
type claimed struct {
	ID, OwnerID, Timespec int64
}

// claims are the pieces that are held now.
func (s *scene) claims() (all []claimed) {
	s.t.Helper()
	var pieces []claimed
	if err := s.store.ask(s.ctx, "GET", "/group/"+mapGroup+"?owned=yes&linear=1", nil, &pieces); err != nil {
		s.t.Fatal(err)
	}
	for _, p := range pieces {
		if p.Timespec > time.Now().UnixMilli() {
			all = append(all, p)
		}
	}
	return all
}

// await waits for a claim of somebody else than the owner that is given.
func (s *scene) await(not int64) claimed {
	s.t.Helper()
	for s.ctx.Err() == nil {
		for _, c := range s.claims() {
			if c.OwnerID != not {
				return c
			}
		}
	}
	s.t.Fatal("no worker has claimed anything")
	return claimed{}
}

func (s *scene) worker() *process {
	s.t.Helper()
	return s.start("", os.Args[0], "-work", "-url", s.store.url, s.texts)
}

// killHolder kills workers until one was killed that held a piece, which it holds on.
func (s *scene) killHolder() claimed {
	s.t.Helper()
	for s.ctx.Err() == nil {
		w := s.worker()
		s.await(0)
		w.kill()
		was := s.claims()
		s.owner() // takes a moment, in which the last request of the worker would have been done
		if is := s.claims(); len(was) == 1 && len(is) == 1 && is[0] == was[0] {
			return is[0]
		}
	}
	s.t.Fatal("no worker was killed that held a piece")
	return claimed{}
}

// wantHandedOn asserts by the ledger that the piece of a killed worker was next claimed by another one, once its claim
// had ended.
func (s *scene) wantHandedOn(held claimed) {
	s.t.Helper()
	type event struct {
		At         time.Time
		Task, Kind string
		Data       struct {
			From, To, Owner int64
		}
	}
	task, handedOn := "", false
	for line := range strings.Lines(s.run("replay")) {
		var ev event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			s.t.Fatalf("%v: %s", err, line)
		}
		switch {
		case ev.Kind == "ItemReplaced" && ev.Data.To == held.ID:
			task = ev.Task
		case task != "" && ev.Task == task && !handedOn:
			handedOn = true
			if ev.Kind != "ItemReplaced" || ev.Data.From != held.ID || ev.Data.Owner == held.OwnerID || ev.At.UnixMilli() < held.Timespec {
				s.t.Errorf("a killed worker held %+v; then came %+v", held, ev)
			}
		}
	}
	if !handedOn {
		s.t.Errorf("the piece of a killed worker, %+v, is not in the ledger, or nothing happened to it", held)
	}
}

// The words of $(go env GOROOT)/src/net, or of MAPREDUCE_DIR, are those of a direct count, though a worker dies while
// it holds a piece, and then the owner of the store while another one holds one.
func TestMapReduce_CountsEachWordOnceThoughAWorkerAndTheOwnerAreKilled(t *testing.T) {
	t.Parallel()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	texts, err := filepath.EvalSymlinks(cmp.Or(os.Getenv("MAPREDUCE_DIR"), filepath.Join(strings.TrimSpace(string(root)), "src", "net")))
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t, texts)
	leader := s.start("", os.Args[0], "-url", s.store.url, "-workers", "0", "-top", "0", texts)
	held := s.killHolder()
	before := s.owner()
	s.worker()
	s.worker()
	s.await(held.OwnerID)
	s.nodes[before].kill()
	if after := s.owner(); after == before {
		t.Errorf("node %s owns the store, and was killed", after)
	}
	<-leader.ended
	if !leader.cmd.ProcessState.Success() {
		t.Fatalf("%s: %s", leader.cmd.ProcessState, leader.errs.String())
	}
	want := directCount(t, texts)
	got := printed(t, leader.out.String())
	for word := range want {
		if got[word] != want[word] {
			t.Errorf("%d of %q, want %d", got[word], word, want[word])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d words, want %d", len(got), len(want))
	}
	if groups, err := s.store.groups(s.ctx); err != nil || len(groups) != 0 {
		t.Errorf("groups left: %q, %v", groups, err)
	}
	s.wantHandedOn(held)
	s.run("verify")
}

// printed reads what the program prints.
func printed(t *testing.T, out string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(out) {
		var n int
		var word string
		if _, err := fmt.Sscan(line, &n, &word); err != nil || counts[word] != 0 {
			t.Fatalf("line %q: %v", line, err)
		}
		counts[word] = n
	}
	return counts
}
