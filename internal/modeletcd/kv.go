package modeletcd

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func (m *Model) rangeKeys(r *pb.RangeRequest) (*pb.RangeResponse, error) {
	if err := checkRange(r); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.keys.check(r.Revision); err != nil {
		return nil, err
	}
	resp := readRange(&write{keyspace: &m.keys}, r)
	resp.Header = m.header()
	return resp, nil
}

// readRange answers a range request within a write, which may be empty.
func readRange(w *write, r *pb.RangeRequest) *pb.RangeResponse {
	rev := r.Revision
	if rev <= 0 {
		rev = w.current()
	}
	kvs := w.read(span{r.Key, r.RangeEnd}, rev)
	resp := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: w.current()}, Count: int64(len(kvs))}
	if r.CountOnly {
		return resp
	}
	if cut := r.Limit + 1; limitedUnsorted(r) && int64(len(kvs)) > cut {
		kvs = kvs[:cut]
	}
	kvs = slices.DeleteFunc(kvs, func(kv *mvccpb.KeyValue) bool { return !inBounds(r, kv) })
	sortPairs(r, kvs)
	if r.Limit > 0 && int64(len(kvs)) > r.Limit {
		kvs, resp.More = kvs[:r.Limit], true
	}
	if !r.KeysOnly {
		resp.Kvs = clones(kvs)
		return resp
	}
	for _, kv := range kvs {
		only := &mvccpb.KeyValue{Key: bytes.Clone(kv.Key), CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version}
		if r.SortTarget == pb.RangeRequest_VALUE { // etcd reads the pairs then, and tells the lease
			only.Lease = kv.Lease
		}
		resp.Kvs = append(resp.Kvs, only)
	}
	return resp
}

// limitedUnsorted tells whether etcd applies the limit to the order of the keys: also for one that sorts by something
// else, but names no order.
func limitedUnsorted(r *pb.RangeRequest) bool {
	inKeyOrder := r.SortOrder == pb.RangeRequest_NONE ||
		r.SortTarget == pb.RangeRequest_KEY && r.SortOrder == pb.RangeRequest_ASCEND
	unbounded := r.MinModRevision == 0 && r.MaxModRevision == 0 && r.MinCreateRevision == 0 && r.MaxCreateRevision == 0
	return r.Limit > 0 && r.Limit < math.MaxInt64 && inKeyOrder && unbounded
}

func inBounds(r *pb.RangeRequest, kv *mvccpb.KeyValue) bool {
	within := func(v, low, high int64) bool { return (low == 0 || v >= low) && (high == 0 || v <= high) }
	return within(kv.ModRevision, r.MinModRevision, r.MaxModRevision) &&
		within(kv.CreateRevision, r.MinCreateRevision, r.MaxCreateRevision)
}

// sortPairs orders what is in the order of the keys; pairs that are equal keep that.
func sortPairs(r *pb.RangeRequest, kvs []*mvccpb.KeyValue) {
	if r.SortTarget == pb.RangeRequest_KEY && r.SortOrder != pb.RangeRequest_DESCEND {
		return
	}
	slices.SortStableFunc(kvs, func(a, b *mvccpb.KeyValue) int {
		order := compareBy(r.SortTarget, a, b)
		if r.SortOrder == pb.RangeRequest_DESCEND {
			return -order
		}
		return order
	})
}

func compareBy(target pb.RangeRequest_SortTarget, a, b *mvccpb.KeyValue) int {
	switch target {
	case pb.RangeRequest_VERSION:
		return cmp.Compare(a.Version, b.Version)
	case pb.RangeRequest_CREATE:
		return cmp.Compare(a.CreateRevision, b.CreateRevision)
	case pb.RangeRequest_MOD:
		return cmp.Compare(a.ModRevision, b.ModRevision)
	case pb.RangeRequest_VALUE:
		return bytes.Compare(a.Value, b.Value)
	}
	return bytes.Compare(a.Key, b.Key)
}

func (m *Model) put(r *pb.PutRequest) (*pb.PutResponse, error) {
	if err := checkPut(r); err != nil {
		return nil, err
	}
	if err := checkSize(&pb.InternalRaftRequest{Put: r}); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.noSpace(); err != nil {
		return nil, err
	}
	if err := m.puttable(r); err != nil {
		return nil, err
	}
	w := &write{keyspace: &m.keys}
	resp := m.applyPut(w, r)
	m.commit(w)
	if err := m.filled(); err != nil {
		return nil, err
	}
	resp.Header = m.header()
	return resp, nil
}

// puttable returns an error when the lease of the put, or the pair that it keeps parts of, is absent.
func (m *Model) puttable(r *pb.PutRequest) error {
	if r.Lease != 0 && m.leases[r.Lease] == nil {
		return rpctypes.ErrGRPCLeaseNotFound
	}
	if (r.IgnoreValue || r.IgnoreLease) && m.keys.at(string(r.Key), m.keys.rev) == nil {
		return rpctypes.ErrGRPCKeyNotFound
	}
	return nil
}

func (m *Model) applyPut(w *write, r *pb.PutRequest) *pb.PutResponse {
	before := w.at(string(r.Key), w.current())
	value, lease := r.Value, r.Lease
	if r.IgnoreValue {
		value = before.Value
	}
	if r.IgnoreLease {
		lease = before.Lease
	}
	m.attach(string(r.Key), before.GetLease(), lease)
	w.put(r.Key, value, lease)
	resp := &pb.PutResponse{Header: &pb.ResponseHeader{Revision: w.current()}}
	if r.PrevKv && before != nil {
		resp.PrevKv = clone(before)
	}
	return resp
}

func (m *Model) deleteRange(r *pb.DeleteRangeRequest) (*pb.DeleteRangeResponse, error) {
	if err := checkDelete(r); err != nil {
		return nil, err
	}
	if err := checkSize(&pb.InternalRaftRequest{DeleteRange: r}); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &write{keyspace: &m.keys}
	resp := m.applyDelete(w, r)
	m.commit(w)
	resp.Header = m.header()
	return resp, nil
}

func (m *Model) applyDelete(w *write, r *pb.DeleteRangeRequest) *pb.DeleteRangeResponse {
	removed := w.delete(span{r.Key, r.RangeEnd})
	for _, kv := range removed {
		m.attach(string(kv.Key), kv.Lease, 0)
	}
	resp := &pb.DeleteRangeResponse{Header: &pb.ResponseHeader{Revision: w.current()}, Deleted: int64(len(removed))}
	if r.PrevKv {
		resp.PrevKvs = clones(removed)
	}
	return resp
}

func (m *Model) compact(r *pb.CompactionRequest) (*pb.CompactionResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.keys.compact(r.Revision); err != nil {
		return nil, err
	}
	return &pb.CompactionResponse{Header: m.header()}, nil
}
