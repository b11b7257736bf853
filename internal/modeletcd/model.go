package modeletcd

import (
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// Model is an etcd cluster. Its methods may be called concurrently; each request is applied as one step.
type Model struct {
	now func() time.Time

	mu      sync.Mutex
	term    uint64
	keys    keyspace
	leases  map[int64]*lease
	granted int64 // ids given to leases so far
	full    bool
	filling bool  // what puts next finds the store full
	size    int64 // of the file, in bytes: what was the most in use since it was defragmented
	streams []*stream
}

// New returns an empty cluster. now is the clock that leases go by, the leader's.
func New(now func() time.Time) *Model {
	return &Model{
		now:    now,
		term:   1,
		keys:   newKeyspace(),
		leases: make(map[int64]*lease),
	}
}

// electionTimeout is etcd's default.
const electionTimeout = time.Second

// ElectLeader makes a new leader, which gives every lease its full TTL again, and the election time-out on top.
func (m *Model) ElectLeader() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.term++
	for _, l := range m.leases {
		l.renew(m.now().Add(electionTimeout))
	}
}

// SetFull raises or ends the alarm of a full store. While it is raised, grants and whatever could put a key fail with
// rpctypes.ErrNoSpace; reads, deletes, revokes and keep-alives work. A client may end it, too.
func (m *Model) SetFull(full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full, m.filling = full, false
}

// Fill lets the store be full from the next grant, or request that could put a key, on. That one is applied, and
// answered with rpctypes.ErrNoSpace: so etcd does when the file grows beyond the quota between a request's arrival
// and its turn.
func (m *Model) Fill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.filling = !m.full
}

// Change records the effect of one revision on one key.
type Change struct {
	Key            string
	Value          []byte // nil when deleted; must not be changed
	ModRevision    int64
	CreateRevision int64 // 0 when deleted
	Lease          int64 // 0 = none
	Deleted        bool
	At             time.Time // when it was applied
}

// History returns all changes from a revision on, those that were compacted too, by revision; those of one revision
// are in the order of the operations.
func (m *Model) History(from int64) (all []Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, ev := range m.keys.since(from) {
		all = append(all, Change{
			Key:            string(ev.Kv.Key),
			Value:          ev.Kv.Value,
			ModRevision:    ev.Kv.ModRevision,
			CreateRevision: ev.Kv.CreateRevision,
			Lease:          ev.Kv.Lease,
			Deleted:        ev.Type == mvccpb.Event_DELETE,
			At:             m.keys.times[ev.Kv.ModRevision],
		})
	}
	return all
}

// Revision returns that of the last change.
func (m *Model) Revision() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.keys.rev
}

// The identity of the cluster and its one member.
const (
	clusterID = 0xc1
	memberID  = 0x3e
)

func (m *Model) header() *pb.ResponseHeader { return m.headerAt(m.keys.rev) }

func (m *Model) headerAt(rev int64) *pb.ResponseHeader {
	return &pb.ResponseHeader{ClusterId: clusterID, MemberId: memberID, Revision: rev, RaftTerm: m.term}
}

// commit ends a write: its changes become the next revision, and watches get them.
func (m *Model) commit(w *write) {
	if len(w.events) == 0 {
		return
	}
	m.keys.commit(w, m.now())
	m.size = max(m.size, m.keys.bytes)
	m.notify(w.events)
}

// noSpace is the error of a request that may put a key and is not applied for it, or nil.
func (m *Model) noSpace() error {
	if m.full {
		return rpctypes.ErrGRPCNoSpace
	}
	return nil
}

// filled is the error of a request that may have put a key and has been applied, or nil.
func (m *Model) filled() error {
	if !m.filling {
		return nil
	}
	m.full, m.filling = true, false
	return rpctypes.ErrGRPCNoSpace
}
