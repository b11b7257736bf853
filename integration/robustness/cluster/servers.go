package cluster

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

	"taskledger/internal/testcluster"
)

const (
	// StartWithin and StopWithin bound how long a process takes to be ready, and to end in order.
	StartWithin = 60 * time.Second
	StopWithin  = 15 * time.Second
	// dialWithin and RequestWithin bound what the driver itself asks of etcd.
	dialWithin    = 2 * time.Second
	RequestWithin = 2 * time.Second
)

// Links are the ways of one node or client to the servers. They are its own, so each can be cut alone.
type Links struct {
	In     *Namespace          // where they begin
	ToEtcd []*testcluster.Link // by member
	ToNATS *testcluster.Link
}

// All returns every one.
func (l Links) All() []*testcluster.Link { return append(slices.Clip(l.ToEtcd), l.ToNATS) }

// Member is one of etcd.
type Member struct {
	Role
	ID       string // hexadecimal, as members greet each other
	PeerLink *testcluster.Link
	Direct   *testcluster.Link // no fault touches it
	Client   *clientv3.Client  // by way of Direct
	Listens  string            // where it listens now; "" while it is down
	Process  *Process
}

// NATSServer is NATS.
type NATSServer struct {
	Role
	Address string // "" while it is down
	Process *Process
}

// Servers is the servers of a run, and the links to them.
type Servers struct {
	Dir   string // of logs
	Data  string
	Begin int64

	mu      sync.Mutex
	Members []*Member
	NATS    *NATSServer
	Links   []Links // of all nodes and clients
}

// StartServers starts the members of etcd and NATS. NATS that is absent is one that never starts. After an error
// whatever runs is ended by Stop.
func StartServers(ctx context.Context, c *Servers, members int, quota int64, nats NATSMode) error {
	addresses := map[string]string{}
	for i := range members {
		m, err := c.newMember(fmt.Sprintf("etcd%d", i+1), quota)
		if err != nil {
			return err
		}
		c.Members = append(c.Members, m)
		addresses[m.Name] = m.PeerLink.Address
	}
	for _, m := range c.Members {
		m.Members = addresses
	}
	if err := EachOf(c.Members, func(m *Member) error { return c.StartMember(ctx, m) }); err != nil {
		return err
	}
	c.NATS = &NATSServer{Role: Role{Kind: roleNATS, Name: "nats", Dir: filepath.Join(c.Data, "nats"), Begin: c.Begin}}
	if nats == NATSTight {
		c.NATS.MaxPending = tightPending
	}
	if nats == NATSAbsent {
		return nil
	}
	return c.StartNATS(ctx)
}

// NATSMode says what NATS a run has.
type NATSMode int

const (
	NATSOn     NATSMode = iota
	NATSTight           // drops a client for whom little waits
	NATSAbsent          // is configured, and never there
)

// tightPending, in bytes, is little enough for a throttled client to be dropped, and more than a segment of the archive takes
// on its way to one.
const tightPending = 4 << 20

func (c *Servers) newMember(name string, quota int64) (m *Member, err error) {
	m = &Member{Role: Role{Kind: roleEtcd, Name: name, Dir: filepath.Join(c.Data, name), Begin: c.Begin, Quota: quota}}
	if err := os.MkdirAll(m.Dir, 0o700); err != nil {
		return nil, err
	}
	if m.PeerLink, err = newLink(nil); err != nil {
		return nil, err
	}
	if m.Direct, err = newLink(nil); err != nil {
		return nil, err
	}
	m.Peers, m.Clients = m.PeerLink.Address, m.Direct.Address
	m.Client, err = clientv3.New(clientv3.Config{Endpoints: []string{m.Direct.Address}, DialTimeout: dialWithin, Logger: zap.NewNop(),
		DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 2 * time.Second})
	return m, err
}

// StartMember starts a member, again if it ran before, and waits until it is ready.
func (c *Servers) StartMember(ctx context.Context, m *Member) error {
	ctx, cancel := context.WithTimeout(ctx, StartWithin)
	defer cancel()
	p, err := StartProcess(m.Role, nil, c.Dir, func(Word) {})
	if err != nil {
		return err
	}
	c.mu.Lock()
	m.Process = p
	c.mu.Unlock()
	w, err := p.Await(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	m.ID, m.Listens = w.ID, w.Clients
	m.PeerLink.Lead(w.Peers)
	c.lead(m)
	c.mu.Unlock()
	_, err = p.Await(ctx)
	return err
}

// lead has all links to a member lead to where it listens now; c.mu is held.
func (c *Servers) lead(m *Member) {
	m.Direct.Lead(m.Listens)
	at := slices.Index(c.Members, m)
	for _, l := range c.Links {
		l.ToEtcd[at].Lead(m.Listens)
	}
}

// Down ends a member by end, and has nothing lead to it any more.
func (c *Servers) Down(m *Member, end func(*Process) error) error {
	err := end(m.Process)
	c.mu.Lock()
	defer c.mu.Unlock()
	m.Listens = ""
	m.PeerLink.Lead("")
	c.lead(m)
	return err
}

// StartNATS starts NATS, again if it ran before, and has the links lead to it.
func (c *Servers) StartNATS(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StartWithin)
	defer cancel()
	p, err := StartProcess(c.NATS.Role, nil, c.Dir, func(Word) {})
	if err != nil {
		return err
	}
	c.NATS.Process = p
	w, err := p.Await(ctx)
	if err != nil {
		return err
	}
	c.LeadNATS(w.Clients)
	return nil
}

// LeadNATS has all links to NATS lead to an address, or nowhere.
func (c *Servers) LeadNATS(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.NATS.Address = address
	for _, l := range c.Links {
		l.ToNATS.Lead(address)
	}
}

// newLink makes a link that begins in a namespace.
func newLink(in *Namespace) (*testcluster.Link, error) {
	var listener net.Listener
	err := in.Do(func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		return nil, err
	}
	return testcluster.NewLinkOn(listener), nil
}

// NewLinks makes the ways of one more node or client, which begin in a namespace.
func (c *Servers) NewLinks(in *Namespace) (Links, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := Links{In: in}
	for _, m := range c.Members {
		to, err := newLink(in)
		if err != nil {
			return l, err
		}
		to.Lead(m.Listens)
		l.ToEtcd = append(l.ToEtcd, to)
	}
	var err error
	if l.ToNATS, err = newLink(in); err != nil {
		return l, err
	}
	l.ToNATS.Lead(c.NATS.Address)
	c.Links = append(c.Links, l)
	return l, nil
}

func (l Links) endpoints() (all []string) {
	for _, e := range l.ToEtcd {
		all = append(all, e.Address)
	}
	return all
}

func (l Links) natsURL() string { return "nats://" + l.ToNATS.Address }

// Leader returns the member that leads.
func (c *Servers) Leader(ctx context.Context) (*Member, error) {
	for {
		for _, m := range c.Members {
			ask, cancel := context.WithTimeout(ctx, RequestWithin)
			status, err := m.Client.Status(ask, m.Direct.Address)
			cancel()
			if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
				return m, nil
			}
		}
		if Sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return nil, fmt.Errorf("no leader of etcd: %w", context.Cause(ctx))
		}
	}
}

// Others returns the members but one.
func (c *Servers) Others(m *Member) []*Member {
	return slices.DeleteFunc(slices.Clone(c.Members), func(o *Member) bool { return o == m })
}

// Observers are clients of the members, on ways that no fault touches.
func (c *Servers) Observers() (all []*clientv3.Client) {
	for _, m := range c.Members {
		all = append(all, m.Client)
	}
	return all
}

// Stop ends every server in order, and all links with their namespaces.
func (c *Servers) Stop() error {
	var errs []error
	if c.NATS != nil && c.NATS.Process != nil {
		errs = append(errs, c.NATS.Process.Stop(StopWithin))
	}
	errs = append(errs, EachOf(c.Members, func(m *Member) error {
		errs := []error{m.Client.Close()}
		if m.Process != nil {
			errs = append(errs, m.Process.Stop(StopWithin))
		}
		return errors.Join(append(errs, m.PeerLink.Close(), m.Direct.Close())...)
	}))
	for _, l := range c.Links {
		for _, l := range l.All() {
			errs = append(errs, l.Close())
		}
		errs = append(errs, l.In.Close())
	}
	return errors.Join(errs...)
}

// AtOnce calls f with each number below n, all at once, and joins the errors.
func AtOnce(n int, f func(i int) error) error {
	errs := make([]error, n)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() { errs[i] = f(i) })
	}
	calls.Wait()
	return errors.Join(errs...)
}

// EachOf calls f for all at once, and joins the errors.
func EachOf[T any](all []T, f func(T) error) error {
	return AtOnce(len(all), func(i int) error { return f(all[i]) })
}

// Refused counts the connections to NATS that were refused.
func (c *Servers) Refused() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.Links {
		n += l.ToNATS.Refused()
	}
	return n
}
