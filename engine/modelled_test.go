package engine_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/internal/modeletcd"
	"taskledger/store"
	"taskledger/task"
)

// modelled is a cluster on a modelled etcd, for a bubble of synctest: what takes minutes there takes none here.
// When the test ends everybody stops.
type modelled struct {
	*testing.T
	etcd  *modeletcd.Model
	bus   *memoryBus                     // nil: no node has a bus
	ways  map[string]modeletcd.Transport // to etcd, by name of node; nil: a direct one
	many  int                            // shards; 0 = modelledShards
	nodes []*modelledNode
}

const (
	modelledTTL    = 3 * time.Second
	modelledShards = 8
)

func newModelled(t *testing.T, bus bool) *modelled {
	c := &modelled{T: t, etcd: modeletcd.New(time.Now)}
	if bus {
		c.bus = &memoryBus{}
	}
	var ticking sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	ticking.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
				c.etcd.Tick()
			}
		}
	})
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.stop()
			n.end()
		}
		stop()
		ticking.Wait()
	})
	return c
}

// modelledNode is a node whose clock a test sets.
type modelledNode struct {
	*engine.Node
	name    string
	began   time.Time
	ahead   atomic.Int64              // of its clock, nanoseconds
	alarms  atomic.Int64              // errors that it has logged
	doubts  atomic.Int64              // those of them that say whether its clock is right
	serving atomic.Int64              // shards that it has begun to serve, ever
	broke   atomic.Pointer[time.Time] // when it logged first that a shard is quarantined; nil: not yet
	stop    context.CancelFunc
	end     func()
}

// start begins a node, whose clock is ahead of the others'.
func (c *modelled) start(name string, ahead time.Duration, configure func(*cfg), behaviors ...task.Behavior) *modelledNode {
	c.Helper()
	n := &modelledNode{name: name}
	n.ahead.Store(int64(ahead))
	way := c.ways[name]
	if way == nil {
		way = modeletcd.Direct{}
	}
	client := c.etcd.ConnectInBubble(way)
	store, err := etcdstore.Open(c.Context(), etcdstore.Config{Client: client, Shards: cmp.Or(c.many, modelledShards)})
	if err != nil {
		c.Fatal(err)
	}
	config := engine.NodeConfig{Store: store, Name: name, TTL: modelledTTL, Behaviors: behaviors, Log: slog.New(n),
		Now: func() time.Time { return time.Now().Add(time.Duration(n.ahead.Load())) }}
	if c.bus != nil {
		config.Bus = c.bus
	}
	if configure != nil {
		configure(&config)
	}
	if n.Node, err = engine.NewNode(config); err != nil {
		c.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	var running sync.WaitGroup
	n.began = time.Now()
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			c.Errorf("%s has ended: %v", name, err)
		}
	})
	n.end = func() {
		running.Wait()
		_ = client.Close() // tells that its context has ended
	}
	c.nodes = append(c.nodes, n)
	return n
}

// newPair is a cluster of two nodes that share the shards and run the same behavior.
func newPair(t *testing.T, bus bool) (*modelled, *job) {
	t.Helper()
	c, job := newModelled(t, bus), newJob(task.Policy{})
	for _, name := range []string{"a", "b"} {
		c.start(name, 0, nil, job).ready(t)
	}
	c.spread(2)
	return c, job
}

// write puts a value beside the nodes, or removes a key where that is empty.
func (c *modelled) write(key, value string) {
	c.Helper()
	etcd := c.etcd.ConnectInBubble(modeletcd.Direct{})
	defer etcd.Close() // tells that its context has ended
	var err error
	if value == "" {
		_, err = etcd.Delete(c.Context(), key)
	} else {
		_, err = etcd.Put(c.Context(), key, value)
	}
	if err != nil {
		c.Fatal(err)
	}
}

// crash ends a node without a word; its session lives until its lease ends.
func (n *modelledNode) crash() {
	n.Kill()
	n.end()
}

// ready waits until the node is, and returns how long after its start that was.
func (n *modelledNode) ready(t *testing.T) time.Duration {
	t.Helper()
	select {
	case <-n.Ready():
	case <-time.After(time.Minute):
		t.Fatalf("%s is not ready after a minute", n.name)
	}
	return time.Since(n.began)
}

// shares counts the shards that each node serves.
func (c *modelled) shares() map[string]int {
	c.Helper()
	shares := map[string]int{}
	for _, name := range c.owners() {
		shares[name]++
	}
	return shares
}

// owners returns the name of the node that serves each shard.
func (c *modelled) owners() map[int]string {
	c.Helper()
	members, err := c.nodes[0].Operations().Nodes(within(c.T))
	if err != nil {
		c.Fatal(err)
	}
	shards, err := c.nodes[0].Operations().Shards(within(c.T))
	if err != nil {
		c.Fatal(err)
	}
	owners := map[int]string{}
	for _, s := range shards {
		for _, n := range members {
			if n.ID == s.Owner && s.Problem == "" {
				owners[s.Shard] = n.Name
			}
		}
	}
	return owners
}

// spread waits until each of n nodes serves its share of the shards.
func (c *modelled) spread(n int) {
	c.Helper()
	for began := time.Now(); ; time.Sleep(time.Second) {
		shares, even := c.shares(), 0
		for _, share := range shares {
			if share >= modelledShards/n {
				even++
			}
		}
		if even == n {
			return
		}
		if time.Since(began) > time.Minute {
			c.Fatalf("shards are not spread over %d nodes: %v", n, shares)
		}
	}
}

// totals counts what all nodes have logged of alarms and of shards served.
func (c *modelled) totals() (alarms, serving int64) {
	for _, n := range c.nodes {
		alarms += n.alarms.Load()
		serving += n.serving.Load()
	}
	return alarms, serving
}

// Enabled implements slog.Handler.
func (n *modelledNode) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelDebug
}

// Handle implements slog.Handler.
func (n *modelledNode) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		n.alarms.Add(1)
	}
	if strings.HasPrefix(r.Message, "whether the clock is right has changed") {
		n.doubts.Add(1)
	}
	if r.Message == "shard is served" {
		n.serving.Add(1)
	}
	if r.Message == "shard is quarantined" {
		n.broke.CompareAndSwap(nil, &r.Time)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (n *modelledNode) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup implements slog.Handler.
func (n *modelledNode) WithGroup(string) slog.Handler { return n }

// memoryBus delivers messages within the process, a millisecond late, while it is up. It implements store.Bus.
type memoryBus struct {
	mu            sync.Mutex
	subscriptions []*subscription
	listeners     []func(bool)
	down          bool
	loads         [][]byte // that were published ever
}

type subscription struct {
	ctx            context.Context
	subject, queue string
	one            sync.Mutex
	handle         func(store.Message)
}

func (s *subscription) takes(subject string) bool {
	want, got := strings.Split(s.subject, "."), strings.Split(subject, ".")
	for i, part := range want {
		if part == ">" && len(got) > i {
			return true
		}
		if i >= len(got) || part != "*" && part != got[i] {
			return false
		}
	}
	return len(want) == len(got)
}

// Publish implements store.Bus.
func (b *memoryBus) Publish(subject, reply string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down {
		return context.Canceled
	}
	m := store.Message{Subject: subject, Reply: reply, Data: slices.Clone(data)}
	if subject == "load" {
		b.loads = append(b.loads, m.Data)
	}
	if !b.deliver(m) && reply != "" {
		b.deliver(store.Message{Subject: reply, NoResponders: true})
	}
	return nil
}

// deliver reports whether anybody is there. The caller holds the lock.
func (b *memoryBus) deliver(m store.Message) (taken bool) {
	queues := map[string]bool{}
	for _, s := range b.subscriptions {
		if s.ctx.Err() != nil || !s.takes(m.Subject) || queues[s.queue] {
			continue
		}
		queues[s.queue] = s.queue != ""
		taken = true
		go func() {
			select {
			case <-time.After(time.Millisecond):
			case <-s.ctx.Done():
				return
			}
			s.one.Lock()
			defer s.one.Unlock()
			s.handle(m)
		}()
	}
	return taken
}

// Subscribe implements store.Bus.
func (b *memoryBus) Subscribe(ctx context.Context, subject, queue string, h func(store.Message)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subscriptions = append(b.subscriptions, &subscription{ctx: ctx, subject: subject, queue: queue, handle: h})
	return nil
}

// Notify implements store.Bus.
func (b *memoryBus) Notify(ctx context.Context, h func(bool)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners = append(b.listeners, func(up bool) {
		if ctx.Err() == nil {
			h(up)
		}
	})
	h(!b.down)
	return nil
}

// set connects everybody, or nobody.
func (b *memoryBus) set(up bool) {
	b.mu.Lock()
	b.down = !up
	listeners := slices.Clone(b.listeners)
	b.mu.Unlock()
	for _, tell := range listeners {
		tell(up)
	}
}
