package modeletcd

import (
	"cmp"
	"maps"
	"slices"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

const (
	minTTL = 2 // seconds: one and a half of etcd's default election time-outs
	maxTTL = 9_000_000_000
)

type lease struct {
	id   int64
	ttl  int64 // seconds
	ends time.Time
	keys map[string]bool
}

func (l *lease) renew(now time.Time) { l.ends = now.Add(time.Duration(l.ttl) * time.Second) }

// attach moves a key from one lease to another; 0 is none.
func (m *Model) attach(key string, from, to int64) {
	if l := m.leases[from]; l != nil {
		delete(l.keys, key)
	}
	if l := m.leases[to]; l != nil {
		l.keys[key] = true
	}
}

func (m *Model) leaseGrant(r *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := r.ID
	for id == 0 || r.ID == 0 && m.leases[id] != nil {
		m.granted++
		id = m.granted
	}
	switch {
	case m.full:
		return nil, rpctypes.ErrGRPCNoSpace
	case r.TTL > maxTTL:
		return nil, rpctypes.ErrGRPCLeaseTTLTooLarge
	case m.leases[id] != nil:
		return nil, rpctypes.ErrGRPCLeaseExist
	}
	l := &lease{id: id, ttl: max(r.TTL, minTTL), keys: make(map[string]bool)}
	l.renew(m.now())
	m.leases[id] = l
	if err := m.filled(); err != nil {
		return nil, err
	}
	return &pb.LeaseGrantResponse{Header: m.header(), ID: id, TTL: l.ttl}, nil
}

func (m *Model) leaseRevoke(r *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.leases[r.ID]
	if l == nil {
		return nil, rpctypes.ErrGRPCLeaseNotFound
	}
	m.revoke(l)
	return &pb.LeaseRevokeResponse{Header: m.header()}, nil
}

// revoke removes the lease, and its keys in one revision.
func (m *Model) revoke(l *lease) {
	w := &write{keyspace: &m.keys}
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		w.delete(span{key: []byte(key)})
	}
	delete(m.leases, l.id)
	m.commit(w)
}

// keepAlive renews a lease. One that is due is revoked instead, as the leader makes renewals wait for that.
func (m *Model) keepAlive(r *pb.LeaseKeepAliveRequest) (*pb.LeaseKeepAliveResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	resp := &pb.LeaseKeepAliveResponse{Header: m.header(), ID: r.ID}
	now := m.now()
	switch l := m.leases[r.ID]; {
	case l == nil:
	case l.due(now):
		m.revoke(l)
	default:
		l.renew(now)
		resp.TTL = l.ttl
	}
	return resp, nil
}

func (l *lease) due(now time.Time) bool { return !l.ends.After(now) }

func (m *Model) timeToLive(r *pb.LeaseTimeToLiveRequest) (*pb.LeaseTimeToLiveResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	resp := &pb.LeaseTimeToLiveResponse{Header: m.header(), ID: r.ID, TTL: -1}
	l := m.leases[r.ID]
	if l == nil {
		return resp, nil
	}
	resp.TTL, resp.GrantedTTL = int64(l.ends.Sub(m.now()).Seconds()), l.ttl
	if r.Keys {
		for _, key := range slices.Sorted(maps.Keys(l.keys)) {
			resp.Keys = append(resp.Keys, []byte(key))
		}
	}
	return resp, nil
}

// Tick revokes the leases that are due, the longest overdue first. Whoever drives the clock calls it.
func (m *Model) Tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	var due []*lease
	for _, l := range m.leases {
		if l.due(now) {
			due = append(due, l)
		}
	}
	slices.SortFunc(due, func(a, b *lease) int { return cmp.Or(a.ends.Compare(b.ends), cmp.Compare(a.id, b.id)) })
	for _, l := range due {
		m.revoke(l)
	}
}

// Expire revokes a lease before it is due, as a leader does that was paused for longer than the TTL. It reports
// whether there was such a lease.
func (m *Model) Expire(lease int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.leases[lease]
	if l != nil {
		m.revoke(l)
	}
	return l != nil
}

// Leases returns the ids of the live leases, sorted.
func (m *Model) Leases() []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.leases))
}
