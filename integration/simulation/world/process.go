package world

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/integration/robustness/traffic"
	"taskledger/store"
	"taskledger/task"
)

const (
	// cluster is the prefix of all keys.
	cluster = "t"
	ttl     = 3 * time.Second
	// beginWithin bounds the time that a node takes to begin.
	beginWithin = 30 * time.Second
)

// process holds a node or a client with its connections and its clock, which would be a process of its own outside of a
// simulation.
type process struct {
	world     *world
	name      string
	principal string // of what it asks for: clients share one
	conn      *connection
	port      *port
	ahead     atomic.Int64 // of its wall clock, nanoseconds
	hits      *tally       // of its clock

	killed    context.Context // ends when it is killed
	kill      context.CancelFunc
	etcd      *clientv3.Client
	behaviors []task.Behavior
	node      *engine.Node   // nil in a client
	client    *engine.Client // of a node: its own
	stop      context.CancelFunc
	ended     chan struct{} // closed when it has ended
	err       error         // of its Run
}

// begin starts a node or a client, which goes on until it is stopped or killed. It tries until it can.
func (w *world) begin(name string, isNode bool) (*process, error) {
	p := &process{
		world:     w,
		name:      name,
		principal: name,
		hits:      newTally(),
		ended:     make(chan struct{}),
	}
	if !isNode {
		p.principal = "caller"
	}
	p.killed, p.kill = context.WithCancel(context.Background())
	p.conn = newConnection(w.dice, &w.late, p.killed)
	p.port = w.bus.port(p.killed)
	w.mu.Lock()
	if w.busless == wholeCluster || w.busless == name {
		p.port.disconnect(true)
	}
	w.mu.Unlock()
	p.etcd = w.etcd.Connect(p.conn)
	p.behaviors = behaviorsOf(p.killed, w.record, &w.feeds)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	store, err := etcdstore.Open(ctx, etcdstore.Config{
		Client:         p.etcd,
		Cluster:        cluster,
		Shards:         w.shards,
		RequestTimeout: w.dice.between(300*time.Millisecond, 2*time.Second),
	})
	if err == nil {
		err = p.run(store, isNode)
	}
	if err != nil {
		return nil, fmt.Errorf("begin %s: %w", name, err)
	}
	return p, nil
}

func (p *process) run(store *etcdstore.Store, isNode bool) (err error) {
	var run func(context.Context) error
	log := slog.New(&traffic.Sessions{Handler: alarms{p}, Joined: func(string) {}})
	if isNode {
		cfg := engine.NodeConfig{
			Store:     sized{store, p.world.small, &p.world.almost, p.world.record},
			Bus:       p.port,
			Behaviors: p.behaviors,
			Name:      p.name,
			TTL:       ttl,
			Log:       log,
			Slots:     p.world.slots(p.world.dice),
			Limits:    p.world.record.Run.Info.Limits,
			Grace:     p.world.dice.between(50*time.Millisecond, time.Second),
			Now:       p.now,
			Zones:     p.world.zones.of(p.name),
		}
		if p.world.unwritable {
			cfg.SessionFile = "\x00" // refused without a system call, in which another goroutine could run
		}
		if p.world.archive != nil {
			cfg.Archive = newArchiveConnection(p.world.archive, p.conn, p.port)
		}
		if p.node, err = engine.NewNode(cfg); err != nil {
			return err
		}
		p.client, run = p.node.Client, p.node.Run
	} else {
		cfg := engine.ClientConfig{
			Store: store,
			Bus:   p.port,
			Name:  p.principal,
			Now:   p.now,
			Log:   log,
		}
		if p.world.archive != nil {
			cfg.Archive = newArchiveConnection(p.world.archive, p.conn, p.port)
		}
		if p.client, err = engine.NewClient(cfg); err != nil {
			return err
		}
		run = p.client.Run
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	go func() {
		defer close(p.ended)
		p.supervise(ctx, func() error { return run(ctx) })
		_ = p.etcd.Close() // tells that its context ended
	}()
	return nil
}

// beBusless says who has no bus from now on, even if it begins only then.
func (w *world) beBusless(who string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busless = who
}

// supervise runs the process until ctx ends. That it ends earlier, without being killed, is damage.
func (p *process) supervise(ctx context.Context, run func() error) {
	p.err = run()
	if ctx.Err() == nil && p.killed.Err() == nil {
		p.world.record.Damage(ended, "%s ended by itself: %v", p.name, p.err)
	}
}

// alarms is a log handler that records errors as damage, since somebody must act on each. It implements slog.Handler.
type alarms struct{ process *process }

// expected lists the errors that faults bring about. A slow node that reads a snapshot which is gone logs one, too.
var expected = []string{
	"the store is full: nothing can be recorded until space is made and the alarm disarmed",
	"new tasks are refused",
	"shard is served later", // its archive cannot be reached
	"nothing is started",    // what is paused cannot be read
	"key is ignored as far as it cannot be read",
}

// clockAlarm is expected while a clock is far off, and until everybody has heard that it is right again.
const clockAlarm = "whether the clock is right has changed; a node with a wrong one owns no shards"

// damageAlarm is expected while something is stored where an entry belongs.
const damageAlarm = "shard is quarantined"

// farOff is from when on a clock may bring that alarm about, and heardRight how long others may believe in it.
const (
	farOff     = 45 * time.Second
	heardRight = 75 * time.Second
)

// misset lets the wall clock of a process be off; 0 = no more.
func (w *world) misset(p *process, by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Duration(p.ahead.Swap(int64(by))).Abs() > farOff || by.Abs() > farOff {
		w.wrong = time.Now()
		if by != 0 {
			w.wrong = w.wrong.Add(time.Hour) // for as long as it takes
		}
	}
}

// clockWasWrong reports whether a clock is far off, or was a moment ago.
func (w *world) clockWasWrong() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.wrong) < heardRight
}

// Enabled implements slog.Handler.
func (alarms) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelError }

// Handle implements slog.Handler.
func (a alarms) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(attr slog.Attr) bool {
		text += " " + attr.String()
		return true
	})
	superseded := strings.HasPrefix(text, "snapshot cannot be read") && strings.Contains(text, store.ErrTrimmed.Error())
	if r.Message == clockAlarm && a.process.world.clockWasWrong() {
		a.process.hits.add(alarmed)
		return nil
	}
	if r.Message == damageAlarm && a.process.world.damaged.Load() {
		return nil
	}
	if a.process.killed.Err() != nil || superseded || slices.Contains(expected, r.Message) {
		return nil
	}
	a.process.world.record.Damage(served, "%s says: %s", a.process.name, text)
	return nil
}

// WithAttrs implements slog.Handler.
func (a alarms) WithAttrs([]slog.Attr) slog.Handler { return a }

// WithGroup implements slog.Handler.
func (a alarms) WithGroup(string) slog.Handler { return a }

// now is the process' wall clock.
func (p *process) now() time.Time {
	ahead := p.ahead.Load()
	if ahead != 0 {
		p.hits.add(misread)
	}
	return time.Now().Add(time.Duration(ahead))
}

// behavior returns the behavior of the id.
func (p *process) behavior(id string) task.Behavior {
	for _, b := range p.behaviors {
		if b.ID() == id {
			return b
		}
	}
	panic("no behavior " + id)
}

// leave stops the process in order.
func (p *process) leave() {
	p.stop()
	<-p.ended
}

// die ends the process as a crash would: from now on nothing that it does has an effect.
func (p *process) die() {
	p.kill()
	p.node.Kill()
	<-p.ended
}
