package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/behaviors/builtin"
	"taskledger/events"
	"taskledger/internal/testcluster"
	"taskledger/ledger"
	"taskledger/task"
)

const (
	// soon bounds what should come at once, on a slow and busy machine.
	soon = 2 * time.Minute
	// callers submit tasks one after the other.
	callers = 8
	// between is the time from an answer to the next command of a caller.
	between = 20 * time.Millisecond
)

// node is a process with a node of a release.
type node struct {
	t    *testing.T
	name string
	in   io.Closer
	end  func() error
	text *strings.Builder // what it says to its end
}

// start runs a node and waits until it is ready.
func start(t *testing.T, c *testcluster.Cluster, path, name string) *node {
	t.Helper()
	n, ready := begin(t, c, path, name)
	select {
	case ok := <-ready:
		if !ok {
			t.Fatalf("node %s: %v\n%s", name, n.end(), n.text)
		}
	case <-time.After(soon):
		t.Fatalf("node %s is not ready after %s", name, soon)
	}
	return n
}

// begin runs a node. It does not outlive the test.
func begin(t *testing.T, c *testcluster.Cluster, path, name string) (n *node, ready <-chan bool) {
	t.Helper()
	role, err := json.Marshal(map[string]string{"Name": name, "Etcd": c.Endpoint, "NATS": c.NATS.URL})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, string(role))
	n = &node{t: t, name: name, text: new(strings.Builder)}
	cmd.Stderr = n.text
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if n.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	says, heard := make(chan bool, 1), make(chan struct{})
	go func() {
		defer close(heard)
		defer close(says)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			says <- true
		}
	}()
	n.end = sync.OnceValue(func() error {
		<-heard
		return cmd.Wait()
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be gone
		_ = n.end()
	})
	return n, says
}

// stop lets it leave in order.
func (n *node) stop() {
	n.t.Helper()
	if err := n.in.Close(); err != nil {
		n.t.Errorf("node %s: %v", n.name, err)
	}
	if err := n.end(); err != nil {
		n.t.Errorf("node %s: %v\n%s", n.name, err, n.text)
	}
}

// load holds the requests of callers while nodes are replaced.
type load struct {
	*testing.T
	client  *testcluster.Client
	stop    context.CancelFunc
	all     sync.WaitGroup
	done    [callers]int                     // tasks that have succeeded
	ask     func(*load, events.TaskID) error // for an event of a kind that the old release lacks
	refused atomic.Int64
	taken   atomic.Int64
}

func startLoad(t *testing.T, client *testcluster.Client, ask func(*load, events.TaskID) error) *load {
	ctx, stop := context.WithCancel(t.Context())
	l := &load{T: t, client: client, stop: stop, ask: ask}
	t.Cleanup(l.end)
	for caller := range callers {
		l.all.Go(func() {
			for ctx.Err() == nil {
				id := events.TaskID(fmt.Sprintf("load-%d/%d", caller, l.done[caller]))
				if err := l.one(id); err != nil {
					l.Errorf("task %s: %v", id, err)
					return
				}
				l.done[caller]++
				rest(ctx)
			}
		})
	}
	l.all.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			l.later(events.TaskID(fmt.Sprintf("later-%d/x", n)))
			rest(ctx)
		}
	})
	return l
}

func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(between):
	}
}

// one submits a task and waits for its outcome.
func (l *load) one(id events.TaskID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.Context()), soon)
	defer cancel()
	f, err := l.client.Submit(ctx, builtin.Noop(), nil, task.SubmitOptions{ID: id})
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	if _, err := f.Wait(ctx); err != nil {
		return fmt.Errorf("wait: %w", err)
	}
	return nil
}

// later asks for an event of the kind that the old release lacks. It is recorded, or refused by the name of an old
// node.
func (l *load) later(id events.TaskID) {
	err := l.ask(l, id)
	refusal, refused := errors.AsType[*task.StateError](err)
	switch {
	case err == nil:
		l.taken.Add(1)
	case refused && strings.HasPrefix(refusal.Problem, "node old-") && strings.HasSuffix(refusal.Problem, "upgrade it first"):
		l.refused.Add(1)
	default:
		l.Errorf("task %s: %v", id, err)
	}
}

func (l *load) end() {
	l.stop()
	l.all.Wait()
}

// goesOn waits until some more commands were answered.
func (l *load) goesOn(what string) {
	l.Helper()
	before := l.refused.Load() + l.taken.Load()
	testcluster.Await(l.T, what, func() bool { return l.refused.Load()+l.taken.Load() > before+2 })
}

// replaced replaces three nodes of an old release, one after the other and under load, by those of a new one, and tries
// the old one again at last. Nothing is refused but what the old nodes cannot read, until the last is replaced; nothing
// is lost; and the old release does not start any more.
func replaced(t *testing.T, before, after string, ask func(*load, events.TaskID) error) {
	t.Helper()
	c := testcluster.New(t, testcluster.Options{})
	client := c.StartClient("caller", nil)
	names := []string{"a", "b", "c"}
	nodes := map[string]*node{}
	for _, name := range names {
		nodes[name] = start(t, c, before, "old-"+name)
	}
	l := startLoad(t, client, ask)
	l.goesOn("load on the old release")
	for _, name := range names {
		if l.taken.Load() > 0 {
			t.Errorf("%d commands have recorded what node old-%s cannot read", l.taken.Load(), name)
		}
		nodes[name].stop()
		nodes[name] = start(t, c, after, "new-"+name)
		l.goesOn("load after the upgrade of " + name)
	}
	testcluster.Await(t, "a command that all nodes can read now", func() bool { return l.taken.Load() > 0 })
	late, ready := begin(t, c, before, "old-d")
	if <-ready {
		t.Error("the old release has joined")
	}
	if err := late.end(); err == nil || !strings.Contains(late.text.String(), "too old for the cluster: upgrade it: it cannot read events of kind") {
		t.Errorf("the old release has ended with %v:\n%s", err, late.text)
	}
	l.goesOn("load beside the old release")
	l.end()
	if l.refused.Load() == 0 {
		t.Error("nothing was refused")
	}
	l.wantEachOnce(client)
	for _, name := range names {
		nodes[name].stop()
	}
	t.Logf("%d refused, %d recorded, %v done", l.refused.Load(), l.taken.Load(), l.done)
}

// wantEachOnce asserts that each task of the load has succeeded once, and that the journal is sound.
func (l *load) wantEachOnce(client *testcluster.Client) {
	l.Helper()
	succeeded := map[events.TaskID]int{}
	for ev, err := range client.Ledger().Replay(within(l.T), ledger.ReplayOptions{}) {
		if err != nil {
			l.Fatal(err)
		}
		if ev.Kind() == events.KindSucceeded {
			succeeded[ev.Task]++
		}
	}
	for caller, done := range l.done {
		for i := range done {
			if id := events.TaskID(fmt.Sprintf("load-%d/%d", caller, i)); succeeded[id] != 1 {
				l.Errorf("task %s has succeeded %d times in the journal", id, succeeded[id])
			}
		}
	}
	report, err := client.Ledger().Verify(within(l.T), ledger.VerifyOptions{})
	if err != nil {
		l.Fatal(err)
	}
	for _, shard := range report {
		if shard.Problem != "" {
			l.Errorf("shard %d: %s", shard.Shard, shard.Problem)
		}
	}
}

// build builds all side by side: most of a build is a link, which keeps one processor busy.
func build(t *testing.T, all ...func() error) {
	t.Helper()
	var building sync.WaitGroup
	for _, one := range all {
		building.Go(func() {
			if err := one(); err != nil {
				t.Error(err)
			}
		})
	}
	if building.Wait(); t.Failed() {
		t.FailNow()
	}
}

func TestUpgrade_RefusesOnlyTheKindThatOldNodesCannotRead(t *testing.T) {
	t.Chdir("../..")
	before, buildBefore := release(t, "before", "KindDeleted")
	after, buildAfter := release(t, "after", "")
	build(t, buildBefore, buildAfter)
	replaced(t, before, after, func(l *load, id events.TaskID) error {
		if err := l.one(id); err != nil {
			l.Errorf("task %s: %v", id, err)
			return nil
		}
		return l.client.Operations().Delete(within(l.T), id)
	})
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}
