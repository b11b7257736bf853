package processes_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/ledger"
)

const (
	processTTL    = 3 * time.Second
	processShards = 4
)

// process is a child of the test: this binary in a role.
type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	in    *json.Encoder
	words chan word // what it says, until it ends
	end   func() error
}

// startProcess runs a process in a role and waits until it is ready. It does not outlive the test.
func startProcess(t *testing.T, r role) (*process, word) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	if r.Zones != "" {
		cmd.Env = append(cmd.Env, "ZONEINFO="+r.Zones)
	}
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, name: r.Name, cmd: cmd, in: json.NewEncoder(in), words: make(chan word, 10_000)}
	go func() {
		defer close(p.words)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var w word
			if err := json.Unmarshal(lines.Bytes(), &w); err == nil {
				p.words <- w
			}
		}
	}()
	p.end = sync.OnceValue(func() error {
		_ = in.Close() // it may be dead
		for range p.words {
		}
		return cmd.Wait()
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be stopped, and may be gone
		_ = p.end()
	})
	return p, p.hear("ready", func(w word) bool { return w.Ready })
}

// hear returns the next word of a kind; others are passed over.
func (p *process) hear(what string, is func(word) bool) word {
	p.t.Helper()
	deadline := time.After(soon)
	for {
		select {
		case w, ok := <-p.words:
			if !ok {
				p.t.Fatalf("process %s has ended; it was to say: %s", p.name, what)
			}
			if is(w) {
				return w
			}
		case <-deadline:
			p.t.Fatalf("process %s did not say within %s: %s", p.name, soon, what)
		}
	}
}

func (p *process) order(o order) {
	p.t.Helper()
	if err := p.in.Encode(o); err != nil {
		p.t.Fatalf("order to %s: %v", p.name, err)
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s to %s: %v", s, p.name, err)
	}
}

// stop ends the process in order.
func (p *process) stop() {
	p.t.Helper()
	if err := p.end(); err != nil {
		p.t.Errorf("process %s: %v", p.name, err)
	}
}

// kill ends it as a crash does, and waits until it is gone.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	_ = p.end()
}

// dies waits until the process, which works towards it, has killed itself.
func (p *process) dies() {
	p.t.Helper()
	const most = 4 * soon
	for deadline, alive := time.After(most), true; alive; {
		select {
		case _, alive = <-p.words:
		case <-deadline:
			p.t.Fatalf("process %s lives on after %s", p.name, most)
		}
	}
	_ = p.end()
	if how, is := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !is || how.Signal() != syscall.SIGKILL {
		p.t.Fatalf("process %s: %s", p.name, p.cmd.ProcessState)
	}
}

// submit lets the process submit a task and waits until that is acknowledged.
func (p *process) submit(id string) {
	p.t.Helper()
	p.order(order{Submit: id})
	if w := p.hear(id+" is submitted", func(w word) bool { return w.Submitted == id }); w.Err != "" {
		p.t.Fatalf("submit of %s at %s: %s", id, p.name, w.Err)
	}
}

// starts waits until the process runs an attempt of a task, and asserts its number.
func (p *process) starts(id string, attempt int) {
	p.t.Helper()
	if w := p.hear(id+" has started", func(w word) bool { return w.Started == id }); w.Attempt != attempt {
		p.t.Errorf("attempt %d of %s runs on %s, want %d", w.Attempt, id, p.name, attempt)
	}
}

// resolves waits until the future of a task that the process submitted has the result: the name of the process that ran
// it.
func (p *process) resolves(id, result string) {
	p.t.Helper()
	w := p.hear(id+" is resolved", func(w word) bool { return w.Resolved == id })
	if w.Err != "" || w.Result != `"`+result+`"` {
		p.t.Errorf("task %s: %s, %s; want %q", id, w.Result, w.Err, result)
	}
}

// processes is a cluster of processes, and a client in the test.
type processes struct {
	*testing.T
	etcd, nats, nkey string
	client           *engine.Client
}

// startProcesses starts etcd, and NATS unless it is to be absent, as a process of their own.
func startProcesses(t *testing.T, noNATS bool) *processes {
	t.Helper()
	_, addresses := startProcess(t, role{Servers: true, Name: "servers", Dir: t.TempDir(), NoNATS: noNATS})
	c := &processes{T: t, etcd: addresses.Etcd, nats: addresses.NATS, nkey: addresses.NKey}
	store, err := etcdstore.Open(within(t, soon), etcdstore.Config{Endpoints: []string{c.etcd}, Shards: processShards})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	if c.client, err = engine.NewClient(engine.ClientConfig{Store: store}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx := t.Context()
	go func() { ended <- c.client.Run(ctx) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("client: %v", err)
		}
	})
	return c
}

func (c *processes) node(name string, slots int) *process {
	c.Helper()
	p, _ := startProcess(c.T, role{
		Name:   name,
		Etcd:   c.etcd,
		NATS:   c.nats,
		NKey:   c.nkey,
		Shards: processShards,
		Slots:  slots,
		TTL:    processTTL,
	})
	return p
}

func (c *processes) wantHistory(id, kinds string) {
	c.Helper()
	if got := strings.Join(history(c.T, c.client, events.TaskID(id)), " "); got != kinds {
		c.Errorf("history of %s is %s, want %s", id, got, kinds)
	}
}

// session is the id of the session of a node that is present; "" when it is not.
func (c *processes) session(name string) string {
	nodes, err := c.client.Operations().Nodes(within(c.T, soon))
	if err != nil {
		return ""
	}
	for _, n := range nodes {
		if n.Name == name {
			return n.ID
		}
	}
	return ""
}

// verify asserts that every journal is whole and every transition in it legal.
func (c *processes) verify() {
	c.Helper()
	all, err := c.client.Ledger().Verify(within(c.T, soon), ledger.VerifyOptions{})
	if err != nil {
		c.Errorf("verification: %v", err)
	}
	for _, v := range all {
		if v.Problem != "" {
			c.Errorf("shard %d: %s", v.Shard, v.Problem)
		}
	}
}
