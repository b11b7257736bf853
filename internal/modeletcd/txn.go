package modeletcd

import (
	"bytes"
	"cmp"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

func (m *Model) txn(r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if err := checkTxn(r); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	grows := puts(r.Success) || puts(r.Failure)
	if grows {
		if err := m.noSpace(); err != nil {
			return nil, err
		}
	}
	resp := &pb.TxnResponse{Succeeded: m.holds(r.Compare)}
	ops := r.Failure
	if resp.Succeeded {
		ops = r.Success
	}
	for _, op := range ops {
		if err := m.applicable(op); err != nil {
			return nil, err
		}
	}
	w := &write{keyspace: &m.keys}
	for _, op := range ops {
		resp.Responses = append(resp.Responses, m.apply(w, op))
	}
	m.commit(w)
	if grows {
		if err := m.filled(); err != nil {
			return nil, err
		}
	}
	resp.Header = m.header()
	return resp, nil
}

func puts(ops []*pb.RequestOp) bool {
	for _, op := range ops {
		if op.GetRequestPut() != nil {
			return true
		}
	}
	return false
}

// readOnly reports whether neither branch can change anything.
func readOnly(r *pb.TxnRequest) bool {
	for _, ops := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range ops {
			if op.GetRequestRange() == nil {
				return false
			}
		}
	}
	return true
}

// applicable returns an error when the operation cannot be applied at the present revision.
func (m *Model) applicable(op *pb.RequestOp) error {
	switch {
	case op.GetRequestPut() != nil:
		return m.puttable(op.GetRequestPut())
	case op.GetRequestRange() != nil:
		if rev := op.GetRequestRange().Revision; rev < 0 && rev < m.keys.compacted {
			return rpctypes.ErrGRPCCompacted
		}
		return m.keys.check(op.GetRequestRange().Revision)
	}
	return nil
}

func (m *Model) apply(w *write, op *pb.RequestOp) *pb.ResponseOp {
	switch {
	case op.GetRequestPut() != nil:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponsePut{ResponsePut: m.applyPut(w, op.GetRequestPut())}}
	case op.GetRequestDeleteRange() != nil:
		return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseDeleteRange{ResponseDeleteRange: m.applyDelete(w, op.GetRequestDeleteRange())}}
	}
	return &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: readRange(w, op.GetRequestRange())}}
}

func (m *Model) holds(compares []*pb.Compare) bool {
	for _, c := range compares {
		kvs := m.keys.read(span{c.Key, c.RangeEnd}, m.keys.rev)
		if len(kvs) == 0 {
			if c.Target == pb.Compare_VALUE {
				return false // an absent value is unlike any
			}
			kvs = []*mvccpb.KeyValue{{}}
		}
		for _, kv := range kvs {
			if !holdsFor(c, kv) {
				return false
			}
		}
	}
	return true
}

func holdsFor(c *pb.Compare, kv *mvccpb.KeyValue) bool {
	var order int
	switch c.Target {
	case pb.Compare_VALUE:
		order = bytes.Compare(kv.Value, c.GetValue())
	case pb.Compare_CREATE:
		order = cmp.Compare(kv.CreateRevision, c.GetCreateRevision())
	case pb.Compare_MOD:
		order = cmp.Compare(kv.ModRevision, c.GetModRevision())
	case pb.Compare_VERSION:
		order = cmp.Compare(kv.Version, c.GetVersion())
	case pb.Compare_LEASE:
		order = cmp.Compare(kv.Lease, c.GetLease())
	}
	switch c.Result {
	case pb.Compare_EQUAL:
		return order == 0
	case pb.Compare_NOT_EQUAL:
		return order != 0
	case pb.Compare_GREATER:
		return order > 0
	}
	return order < 0
}
