package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/link"
	"taskledger/integration/robustness/namespace"
	"taskledger/integration/robustness/process"
	"taskledger/integration/robustness/role"
)

const (
	startWithin = 60 * time.Second
	stopWithin  = 15 * time.Second
	// dialWithin and requestWithin bound what the driver itself asks of etcd.
	dialWithin    = 2 * time.Second
	requestWithin = 2 * time.Second
)

// links are the ways of one node or client to the servers. They are its own, so each can be cut alone.
type links struct {
	in   *namespace.Namespace // where they begin
	etcd []*link.Link         // by member
	nats *link.Link
}

func (l links) all() []*link.Link { return append(slices.Clip(l.etcd), l.nats) }

// member is one of etcd.
type member struct {
	role.Role
	id       string // hexadecimal, as members greet each other
	peers    *link.Link
	observer *link.Link       // no fault touches it
	client   *clientv3.Client // on observer
	clients  string           // where it listens now; "" while it is down
	process  *process.Process
}

// natsServer is NATS.
type natsServer struct {
	role.Role
	address string // "" while it is down
	process *process.Process
}

// cluster is the servers of a run, and the links to them.
type cluster struct {
	dir   string // of logs
	data  string
	begin int64

	mu      sync.Mutex
	members []*member
	nats    *natsServer
	links   []links // of all nodes and clients
}

// startCluster starts the members of etcd and NATS. NATS that is absent is one that never starts. After an error
// whatever runs is ended by stop.
func startCluster(ctx context.Context, c *cluster, members int, quota int64, nats natsMode) error {
	addresses := map[string]string{}
	for i := range members {
		m, err := c.newMember(fmt.Sprintf("etcd%d", i+1), quota)
		if err != nil {
			return err
		}
		c.members = append(c.members, m)
		addresses[m.Name] = m.peers.Address
	}
	for _, m := range c.members {
		m.Members = addresses
	}
	if err := eachOf(c.members, func(m *member) error { return c.startMember(ctx, m) }); err != nil {
		return err
	}
	c.nats = &natsServer{Role: role.Role{Kind: role.NATS, Name: "nats", Dir: filepath.Join(c.data, "nats"), Begin: c.begin}}
	if nats == natsTight {
		c.nats.MaxPending = tightPending
	}
	if nats == natsAbsent {
		return nil
	}
	return c.startNATS(ctx)
}

// natsMode says what NATS a run has.
type natsMode int

const (
	natsOn     natsMode = iota
	natsTight           // drops a client for whom little waits
	natsAbsent          // is configured, and never there
)

// tightPending, in bytes, is little enough for a throttled client to be dropped, and more than a segment of the archive takes
// on its way to one.
const tightPending = 4 << 20

func (c *cluster) newMember(name string, quota int64) (m *member, err error) {
	m = &member{Role: role.Role{Kind: role.Etcd, Name: name, Dir: filepath.Join(c.data, name), Begin: c.begin, Quota: quota}}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return nil, err
	}
	if m.peers, err = newLink(nil); err != nil {
		return nil, err
	}
	if m.observer, err = newLink(nil); err != nil {
		return nil, err
	}
	m.Peers, m.Clients = m.peers.Address, m.observer.Address
	m.client, err = clientv3.New(clientv3.Config{Endpoints: []string{m.observer.Address}, DialTimeout: dialWithin, Logger: zap.NewNop(),
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 2 * time.Second})
	return m, err
}

// startMember starts a member, again if it ran before, and waits until it is ready.
func (c *cluster) startMember(ctx context.Context, m *member) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	p, err := process.Start(m.Role, nil, c.dir, func(role.Word) {})
	if err != nil {
		return err
	}
	c.mu.Lock()
	m.process = p
	c.mu.Unlock()
	w, err := p.Await(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	m.id, m.clients = w.ID, w.Clients
	m.peers.Lead(w.Peers)
	c.lead(m)
	c.mu.Unlock()
	_, err = p.Await(ctx)
	return err
}

// lead has all links to a member lead to where it listens now; c.mu is held.
func (c *cluster) lead(m *member) {
	m.observer.Lead(m.clients)
	at := slices.Index(c.members, m)
	for _, l := range c.links {
		l.etcd[at].Lead(m.clients)
	}
}

// down ends a member by end, and has nothing lead to it any more.
func (c *cluster) down(m *member, end func(*process.Process) error) error {
	err := end(m.process)
	c.mu.Lock()
	defer c.mu.Unlock()
	m.clients = ""
	m.peers.Lead("")
	c.lead(m)
	return err
}

func (c *cluster) startNATS(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	p, err := process.Start(c.nats.Role, nil, c.dir, func(role.Word) {})
	if err != nil {
		return err
	}
	c.nats.process = p
	w, err := p.Await(ctx)
	if err != nil {
		return err
	}
	c.leadNATS(w.Clients)
	return nil
}

func (c *cluster) leadNATS(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nats.address = address
	for _, l := range c.links {
		l.nats.Lead(address)
	}
}

// newLink makes a link that begins in a namespace.
func newLink(in *namespace.Namespace) (*link.Link, error) {
	var listener net.Listener
	err := in.Do(func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		return nil, err
	}
	return link.New(listener), nil
}

// newLinks makes the ways of one more node or client, which begin in a namespace.
func (c *cluster) newLinks(in *namespace.Namespace) (links, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := links{in: in}
	for _, m := range c.members {
		to, err := newLink(in)
		if err != nil {
			return l, err
		}
		to.Lead(m.clients)
		l.etcd = append(l.etcd, to)
	}
	var err error
	if l.nats, err = newLink(in); err != nil {
		return l, err
	}
	l.nats.Lead(c.nats.address)
	c.links = append(c.links, l)
	return l, nil
}

func (l links) endpoints() (all []string) {
	for _, e := range l.etcd {
		all = append(all, e.Address)
	}
	return all
}

func (l links) natsURL() string { return "nats://" + l.nats.Address }

// leader returns the member that leads.
func (c *cluster) leader(ctx context.Context) (*member, error) {
	for {
		for _, m := range c.members {
			ask, cancel := context.WithTimeout(ctx, requestWithin)
			status, err := m.client.Status(ask, m.observer.Address)
			cancel()
			if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
				return m, nil
			}
		}
		if clock.Sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return nil, fmt.Errorf("no leader of etcd: %w", context.Cause(ctx))
		}
	}
}

// others returns the members but one.
func (c *cluster) others(m *member) []*member {
	return slices.DeleteFunc(slices.Clone(c.members), func(o *member) bool { return o == m })
}

// observers are clients of the members, on ways that no fault touches.
func (c *cluster) observers() (all []*clientv3.Client) {
	for _, m := range c.members {
		all = append(all, m.client)
	}
	return all
}

// stop ends every server in order, and all links with their namespaces.
func (c *cluster) stop() error {
	var errs []error
	if c.nats != nil && c.nats.process != nil {
		errs = append(errs, c.nats.process.Stop(stopWithin))
	}
	errs = append(errs, eachOf(c.members, func(m *member) error {
		errs := []error{m.client.Close()}
		if m.process != nil {
			errs = append(errs, m.process.Stop(stopWithin))
		}
		return errors.Join(append(errs, m.peers.Close(), m.observer.Close())...)
	}))
	for _, l := range c.links {
		for _, l := range l.all() {
			errs = append(errs, l.Close())
		}
		errs = append(errs, l.in.Close())
	}
	return errors.Join(errs...)
}

// eachOf calls f for all at once, and joins the errors.
func eachOf[T any](all []T, f func(T) error) error {
	errs := make([]error, len(all))
	var calls sync.WaitGroup
	for i, one := range all {
		calls.Go(func() { errs[i] = f(one) })
	}
	calls.Wait()
	return errors.Join(errs...)
}
