package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"taskledger/engine"
	"taskledger/etcdstore"
	"taskledger/integration/robustness/traffic"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
)

const (
	grace = time.Second // that running attempts get at a drain
	// openWithin bounds the opening of the store, during which a fault may be in force.
	openWithin = 60 * time.Second
	// nodeThinks is the mean time between two submits of a node; askWithin bounds each.
	nodeThinks = 500 * time.Millisecond
	askWithin  = 3 * time.Second
)

// nodeInRole is a process that runs tasks, and submits a few.
type nodeInRole struct {
	*inRole
	log    *slog.Logger
	engine *engine.Node
	store  *etcdstore.Store
	writes *testcluster.RandomFaults // nil unless FaultyStore
	bus    *restlessBus
	offset atomic.Int64 // of its wall clock, nanoseconds
	asked  atomic.Int64 // times that a wall clock with an offset was read
	losing bool         // writes are lost
	before int64        // answers of etcd that had been lost when that began
	close  []func() error

	stopSubmit context.CancelFunc
	submitting sync.WaitGroup
	begun      int // times that it began to submit
}

func (p *inRole) node() (err error) {
	n := &nodeInRole{inRole: p, stopSubmit: func() {}}
	n.log = slog.New(&traffic.Sessions{Handler: slog.NewTextHandler(os.Stderr, nil), Joined: func(id string) { p.say(Word{Session: id}) }})
	before := goleak.IgnoreCurrent()
	defer func() {
		for i := len(n.close) - 1; i >= 0; i-- {
			err = errors.Join(err, n.close[i]())
		}
		err = errors.Join(err, leaked(before))
	}()
	if err := n.open(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() {
		err := n.engine.Run(ctx)
		if ctx.Err() == nil {
			n.say(Word{Died: fmt.Sprintf("ended by itself: %v", err)})
		}
		ended <- err
	}()
	go n.tellReady(ctx)
	err = n.obey(n.carryOut)
	n.submitOff()
	stop()
	return errors.Join(err, <-ended)
}

// leakTimeout bounds the time that goroutines of connections may take to end.
const leakTimeout = 5 * time.Second

// leaked looks for goroutines that were not there before.
func leaked(before goleak.Option) (err error) {
	for until := time.Now().Add(leakTimeout); ; {
		if err = goleak.Find(before); err == nil || time.Now().After(until) {
			return err
		}
	}
}

func (n *nodeInRole) tellReady(ctx context.Context) {
	select {
	case <-n.engine.Ready():
		n.say(Word{Ready: true})
	case <-ctx.Done():
	}
}

func (n *nodeInRole) open() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), openWithin)
	defer cancel()
	cfg := etcdstore.Config{Endpoints: n.Etcd, Shards: n.Shards, Log: n.log}
	if n.FaultyStore {
		client, err := clientv3.New(clientv3.Config{Endpoints: n.Etcd, DialTimeout: 5 * time.Second, DialKeepAliveTime: 10 * time.Second,
			DialKeepAliveTimeout: 3 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return fmt.Errorf("connect to etcd: %w", err)
		}
		n.close = append(n.close, client.Close)
		_, n.writes = testcluster.NewRandomFaults(client)
		client.KV = n.writes
		cfg.Endpoints, cfg.Client = nil, client
	}
	if n.store, err = etcdstore.Open(ctx, cfg); err != nil {
		return err
	}
	n.close = append(n.close, n.store.Close)
	c := engine.NodeConfig{Store: n.store, Name: n.Name, Slots: n.Slots, Limits: n.Limits, TTL: n.TTL, Grace: grace, Log: n.log, Now: n.now,
		Behaviors: traffic.Behaviors(n.Begin, func(r traffic.Report) { n.say(Word{Report: &r}) })}
	bus, err := natsbus.Open(natsbus.Config{URLs: []string{n.NATS}, Key: n.store.Cluster().Key, Log: n.log})
	if err != nil {
		return err
	}
	n.bus = &restlessBus{Bus: bus, stats: bus.Stats}
	n.close = append(n.close, bus.Close, n.bus.settle)
	c.Bus = n.bus
	if n.Archive {
		if c.Archive, err = archiveOf(bus); err != nil {
			return err
		}
	}
	n.engine, err = engine.NewNode(c)
	return err
}

func (n *nodeInRole) now() time.Time {
	offset := time.Duration(n.offset.Load())
	if offset != 0 {
		n.asked.Add(1)
	}
	return time.Now().Add(offset)
}

// carryOut returns, as Count, what was felt since the fault was switched on: how often the wrong clock was read, how
// many answers of etcd were lost, how many messages were doubled or delayed. For Order.Count it returns the number of
// forged messages that were dropped in all.
func (n *nodeInRole) carryOut(o Order) (int64, error) {
	switch {
	case o.Clock != nil:
		if *o.Clock != 0 {
			n.asked.Store(0)
		}
		n.offset.Store(int64(*o.Clock))
		return n.asked.Load(), nil
	case o.Writes != nil && n.writes != nil:
		return n.loseWrites(*o.Writes), nil
	case o.Bus != nil:
		if *o.Bus {
			n.bus.restless.Store(0)
		}
		n.bus.on.Store(*o.Bus)
		return n.bus.restless.Load(), nil
	case o.Count:
		return int64(n.bus.stats().Forged), nil
	case o.Submit != nil:
		n.submitOff()
		if *o.Submit {
			n.submitOn()
		}
		return 0, nil
	}
	return 0, errors.New("order does not suit the role")
}

// loseWrites returns how many answers were lost since it was on.
func (n *nodeInRole) loseWrites(on bool) (lost int64) {
	if on && !n.losing {
		n.before = n.writes.Settle()
	}
	n.losing = on
	n.writes.Switch(on)
	if on {
		return 0
	}
	return n.writes.Settle() - n.before
}

func (n *nodeInRole) submitOn() {
	ctx, stop := context.WithCancel(context.Background())
	n.stopSubmit = stop
	n.submitting.Go(func() { n.submit(ctx) })
	n.begun++
	source := fmt.Sprintf("%s/%d", Source(n.Name, os.Getpid()), n.begun)
	n.submitting.Go(func() { n.keepStores(ctx, n.engine.Client, source, storeClientsOfNode) })
}

// submitOff returns when no submit is under way.
func (n *nodeInRole) submitOff() {
	n.stopSubmit()
	n.submitting.Wait()
}

// Source names the source of what a process of a node submits.
func Source(name string, pid int) string { return fmt.Sprintf("%s-%d", name, pid) }

// submit submits unique tasks until ctx ends.
func (n *nodeInRole) submit(ctx context.Context) {
	name := Source(n.Name, os.Getpid())
	source := traffic.NewSource(name, n.Seed)
	source.Few = n.Few
	for number := 1; ; number++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(source.Think(nodeThinks)):
		}
		request := source.Submit()
		op := request.Operation(0, n.Begin)
		request.Ask(&op, n.Name, fmt.Sprint(name, "-", number))
		n.say(Word{Call: &traffic.Call{Number: number, Operation: op}})
		ask, cancel := context.WithTimeout(context.Background(), askWithin)
		request.Do(ask, n.engine.Client, &op, n.Begin).Close()
		cancel()
		n.say(Word{Call: &traffic.Call{Number: number, Operation: op}})
	}
}
