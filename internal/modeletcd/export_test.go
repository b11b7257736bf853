package modeletcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// LeaseClient makes requests that the client has no method for.
func (m *Model) LeaseClient() pb.LeaseClient {
	return leaseClient{pb.NewLeaseClient(refusal{}), &conn{m, Direct{}}}
}

// Streams returns how many watch streams are open.
func (m *Model) Streams() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.streams)
}
