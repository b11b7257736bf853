package testcluster

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// EtcdMembers is an etcd of several members in this process. Peers and clients reach each over links whose addresses
// stay the same when it is started again. Its methods must be called from the test's goroutine.
type EtcdMembers struct {
	Endpoints []string // of all members

	t       testing.TB
	members []*etcdMember
}

type etcdMember struct {
	name, dir      string
	peers, clients *Link
	etcd           *embed.Etcd // nil while stopped
}

// StartEtcdMembers starts n members that live as long as the test.
func StartEtcdMembers(t testing.TB, n int) *EtcdMembers {
	t.Helper()
	e := &EtcdMembers{t: t}
	for i := range n {
		m := &etcdMember{name: fmt.Sprint("m", i), dir: t.TempDir(), peers: NewLink(t), clients: NewLink(t)}
		e.members = append(e.members, m)
		e.Endpoints = append(e.Endpoints, m.clients.Address)
	}
	t.Cleanup(func() {
		var stopping sync.WaitGroup
		for i := range e.members {
			stopping.Go(func() { e.Stop(i) })
		}
		stopping.Wait()
	})
	for _, m := range e.members {
		e.launch(m)
	}
	for _, m := range e.members {
		e.awaitReady(m)
	}
	return e
}

// Leader returns the number of the member that leads.
func (e *EtcdMembers) Leader() (leader int) {
	e.t.Helper()
	Await(e.t, "a leader of etcd", func() bool {
		for i, m := range e.members {
			if m.etcd != nil && m.etcd.Server.Leader() == m.etcd.Server.MemberID() {
				leader = i
				return true
			}
		}
		return false
	})
	return leader
}

// Stop ends a member. It may have ended already.
func (e *EtcdMembers) Stop(i int) {
	m := e.members[i]
	if m.etcd == nil {
		return
	}
	m.clients.Lead("")
	m.peers.Lead("")
	select {
	case <-m.etcd.Server.ReadyNotify():
	default:
		m.etcd.Server.HardStop() // Close waits for ever for one that did not become ready
	}
	m.etcd.Close()
	m.etcd = nil
}

// Start starts a stopped member again on its data.
func (e *EtcdMembers) Start(i int) {
	e.t.Helper()
	e.launch(e.members[i])
	e.awaitReady(e.members[i])
}

// Hold keeps a member and its clients from hearing of each other, with their connections open, until Release.
func (e *EtcdMembers) Hold(i int) { e.members[i].clients.Hold(Forth, Back) }

// Release ends a Hold; what was kept back arrives.
func (e *EtcdMembers) Release(i int) { e.members[i].clients.Clear() }

func (e *EtcdMembers) launch(m *etcdMember) {
	e.t.Helper()
	cfg := etcdConfig(m.dir)
	cfg.Name = m.name
	cfg.TickMs, cfg.ElectionMs = 100, 1000 // milliseconds, as by default: a busy machine delays heartbeats
	cfg.AdvertisePeerUrls = []url.URL{{Scheme: "http", Host: m.peers.Address}}
	cfg.AdvertiseClientUrls = []url.URL{{Scheme: "http", Host: m.clients.Address}}
	var all []string
	for _, other := range e.members {
		all = append(all, other.name+"=http://"+other.peers.Address)
	}
	cfg.InitialCluster = strings.Join(all, ",")
	etcd, err := embed.StartEtcd(cfg)
	if err != nil {
		e.t.Fatalf("start etcd member %s: %v", m.name, err)
	}
	m.etcd = etcd
	m.peers.Lead(etcd.Peers[0].Addr().String())
	m.clients.Lead(etcd.Clients[0].Addr().String())
}

func (e *EtcdMembers) awaitReady(m *etcdMember) {
	e.t.Helper()
	select {
	case <-m.etcd.Server.ReadyNotify():
	case err := <-m.etcd.Err():
		e.t.Fatalf("start etcd member %s: %v", m.name, err)
	case <-time.After(startTimeout):
		e.t.Fatalf("etcd member %s not ready after %s", m.name, startTimeout)
	}
}

// client connects to all members.
func (e *EtcdMembers) client() *clientv3.Client {
	e.t.Helper()
	return dialEtcd(e.t, clientv3.Config{Endpoints: e.Endpoints, DialTimeout: startTimeout})
}
