package processes_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/behaviors"
	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/etcdstore"
	"taskledger/events"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/task"
)

// roleVariable makes this test binary a process of a cluster instead: it holds a role as JSON.
const roleVariable = "TASKLEDGER_TEST_ROLE"

// role configures a process of a cluster.
type role struct {
	Servers bool // etcd, and NATS if wanted; else a node
	Dir     string
	NoNATS  bool

	Name    string
	Etcd    string
	NATS    string // "" = without
	NKey    string // that it asks for
	Cluster string // "" = the default one
	Shards  int
	Slots   int
	TTL     time.Duration
	Upkeep  bool          // it archives, and takes its store for a small one
	Ahead   time.Duration // of its wall clock, of that of the machine
	Zones   string        // directory of time zones, before those of the system; "" = none
	Dies    *fatalWrite   // nil = only when it is told to
}

// order is a line on a process's standard input.
type order struct {
	Submit, Succeed string         // id of a task
	Clock           *time.Duration // how far ahead its wall clock is from now on; nil = as before
}

// word is a line on a process's standard output.
type word struct {
	Ready     bool   `json:",omitempty"`
	Etcd      string `json:",omitempty"`
	NATS      string `json:",omitempty"`
	NKey      string `json:",omitempty"`
	Submitted string `json:",omitempty"` // id of a task whose submit was acknowledged
	Started   string `json:",omitempty"`
	Attempt   int    `json:",omitempty"` // of Started
	Resolved  string `json:",omitempty"`
	Result    string `json:",omitempty"` // of Resolved
	Err       string `json:",omitempty"` // of Submitted and Resolved
}

// child is a process of a cluster. It ends in order when its standard input does.
type child struct {
	role
	ahead   atomic.Int64 // of its wall clock, nanoseconds
	mu      sync.Mutex
	out     *json.Encoder
	running map[string]chan struct{} // attempts that wait for Succeed, by task
}

// runAsChild takes on the role that the parent gave this process; false when it has none.
func runAsChild() (isChild bool, code int) {
	text := os.Getenv(roleVariable)
	if text == "" {
		return false, 0
	}
	c := &child{out: json.NewEncoder(os.Stdout), running: map[string]chan struct{}{}}
	err := json.Unmarshal([]byte(text), &c.role)
	switch {
	case err != nil:
	case c.Servers:
		err = c.serve()
	default:
		err = c.work()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, c.Name, err)
		return true, 1
	}
	return true, 0
}

func (c *child) say(w word) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.out.Encode(w) // without a parent nobody hears
}

func (c *child) serve() error {
	s, err := embedded.StartServers(context.Background(), embedded.ServersConfig{Dir: c.Dir, NoNATS: c.NoNATS})
	if err != nil {
		return err
	}
	c.say(word{Ready: true, Etcd: s.EtcdEndpoint(), NATS: s.NATSURL(), NKey: s.NATSNKey()})
	_, _ = io.Copy(io.Discard, os.Stdin)
	return s.Close()
}

func (c *child) work() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", c.Name)
	at := etcdstore.Config{Endpoints: []string{c.Etcd}, Cluster: c.Cluster, Shards: c.Shards, Log: log}
	if c.Dies != nil {
		etcd, err := etcdstore.NewClient(ctx, at)
		if err != nil {
			return err
		}
		defer etcd.Close()
		etcd.KV = fatalKV{etcd.KV, c.Dies}
		at.Endpoints, at.Client = nil, etcd
	}
	store, err := etcdstore.Open(ctx, at)
	if err != nil {
		return err
	}
	defer store.Close()
	c.ahead.Store(int64(c.Ahead))
	cfg := engine.NodeConfig{
		Store:     store,
		Name:      c.Name,
		Slots:     c.Slots,
		TTL:       c.TTL,
		Grace:     time.Second,
		Log:       log,
		Now:       func() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) },
		Behaviors: []task.Behavior{c, runEcho(), runNap()},
	}
	if c.NATS != "" {
		bus, err := natsbus.Open(natsbus.Config{
			URLs:    []string{c.NATS},
			NKey:    c.NKey,
			Cluster: c.Cluster,
			Key:     store.Cluster().Key,
			Log:     log,
		})
		if err != nil {
			return err
		}
		defer bus.Close()
		cfg.Bus = bus
		if c.Upkeep {
			if cfg.Archive, err = bus.Archive(embedded.ArchiveConfig()); err != nil {
				return err
			}
			cfg.Store = tight{store}
		}
	}
	if c.Dies != nil {
		cfg.Store, cfg.Archive = fatalStore{cfg.Store, c.Dies}, fatalArchive{cfg.Archive, c.Dies}
	}
	n, err := engine.NewNode(cfg)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	<-n.Ready()
	c.say(word{Ready: true})
	c.obey(n)
	stop()
	return <-ended
}

// tight is a store that says that it is small: a tail of 1 MiB makes a snapshot due.
type tight struct{ store.Store }

func (tight) Usage(context.Context) (store.Usage, error) {
	return store.Usage{InUse: 1, Size: 1, Quota: 16 << 20, Revision: 1}, nil
}

// obey carries out orders until there are no more.
func (c *child) obey(n *engine.Node) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			fmt.Fprintln(os.Stderr, "order cannot be read:", err)
			return
		}
		if o.Clock != nil {
			c.ahead.Store(int64(*o.Clock))
		}
		if o.Submit != "" {
			go c.submit(n, o.Submit)
		}
		if o.Succeed != "" {
			c.mu.Lock()
			if ends := c.running[o.Succeed]; ends != nil {
				close(ends)
				delete(c.running, o.Succeed)
			}
			c.mu.Unlock()
		}
	}
}

func (c *child) submit(n *engine.Node, id string) {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	f, err := n.Submit(ctx, c, nil, task.SubmitOptions{ID: events.TaskID(id)})
	c.say(word{Submitted: id, Err: textOf(err)})
	if err == nil {
		result, err := f.Wait(ctx)
		c.say(word{Resolved: id, Result: string(result), Err: textOf(err)})
	}
}

// runNap is a behavior that takes longer than a second.
func runNap() task.Behavior {
	return behaviors.Define[string, string]("nap", nil).Bind(func(ctx context.Context, p string) (string, error) {
		select {
		case <-time.After(1500 * time.Millisecond):
			return p, nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	})
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A child is the behavior that it runs: attempts wait for the order to succeed, and their result is the process's name.

func (c *child) ID() string          { return "job" }
func (c *child) Types() string       { return "" }
func (c *child) Policy() task.Policy { return task.Policy{MaxAttempts: 1} }
func (c *child) Plan([]byte, time.Time) (task.Plan, error) {
	return task.Plan{}, nil
}

func (c *child) Run(ctx context.Context, a task.Attempt) task.Outcome {
	ends := make(chan struct{})
	c.mu.Lock()
	c.running[string(a.Task)] = ends
	c.mu.Unlock()
	c.say(word{Started: string(a.Task), Attempt: a.Number})
	select {
	case <-ends:
		name, err := json.Marshal(c.Name)
		return outcome(name, err)
	case <-ctx.Done():
		return outcome(nil, context.Cause(ctx))
	}
}

func outcome(result []byte, err error) task.Outcome {
	if err != nil {
		return task.Outcome{Err: &events.Error{Code: events.CodeFailed, Message: err.Error()}}
	}
	return task.Outcome{Result: result}
}
