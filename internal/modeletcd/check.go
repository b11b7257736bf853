package modeletcd

import (
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// The limits that etcd has by default.
const (
	maxOps          = 128
	maxRequestBytes = 3 << 19 // 1.5 MiB
	requestOverhead = 12      // what the header adds that etcd gives a request
)

// unimplemented is the error of what the real etcd would do and the model does not.
func unimplemented(what string) error {
	return status.Error(codes.Unimplemented, "modelled etcd: "+what)
}

func checkSize(r *pb.InternalRaftRequest) error {
	if proto.Size(r)+requestOverhead > maxRequestBytes {
		return rpctypes.ErrGRPCRequestTooLarge
	}
	return nil
}

func checkRange(r *pb.RangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	_, order := pb.RangeRequest_SortOrder_name[int32(r.SortOrder)]
	_, target := pb.RangeRequest_SortTarget_name[int32(r.SortTarget)]
	if !order || !target {
		return rpctypes.ErrGRPCInvalidSortOption
	}
	return nil
}

func checkPut(r *pb.PutRequest) error {
	switch {
	case len(r.Key) == 0:
		return rpctypes.ErrGRPCEmptyKey
	case r.IgnoreValue && len(r.Value) != 0:
		return rpctypes.ErrGRPCValueProvided
	case r.IgnoreLease && r.Lease != 0:
		return rpctypes.ErrGRPCLeaseProvided
	}
	return nil
}

func checkDelete(r *pb.DeleteRangeRequest) error {
	if len(r.Key) == 0 {
		return rpctypes.ErrGRPCEmptyKey
	}
	return nil
}

func checkTxn(r *pb.TxnRequest) error {
	if max(len(r.Compare), len(r.Success), len(r.Failure)) > maxOps {
		return rpctypes.ErrGRPCTooManyOps
	}
	for _, c := range r.Compare {
		if len(c.Key) == 0 {
			return rpctypes.ErrGRPCEmptyKey
		}
	}
	for _, branch := range [][]*pb.RequestOp{r.Success, r.Failure} {
		for _, op := range branch {
			if err := checkOp(op); err != nil {
				return err
			}
		}
	}
	for _, branch := range [][]*pb.RequestOp{r.Success, r.Failure} {
		if err := checkOverlap(branch); err != nil {
			return err
		}
	}
	if readOnly(r) {
		return nil
	}
	return checkSize(&pb.InternalRaftRequest{Txn: r})
}

func checkOp(op *pb.RequestOp) error {
	switch {
	case op.GetRequestRange() != nil:
		return checkRange(op.GetRequestRange())
	case op.GetRequestPut() != nil:
		return checkPut(op.GetRequestPut())
	case op.GetRequestDeleteRange() != nil:
		return checkDelete(op.GetRequestDeleteRange())
	case op.GetRequestTxn() != nil:
		return unimplemented("RequestOp.request_txn")
	}
	return rpctypes.ErrGRPCKeyNotFound
}

// checkOverlap refuses a branch that would change a key twice.
func checkOverlap(branch []*pb.RequestOp) error {
	put := make(map[string]bool)
	for _, op := range branch {
		r := op.GetRequestPut()
		if r == nil {
			continue
		}
		if put[string(r.Key)] {
			return rpctypes.ErrGRPCDuplicateKey
		}
		put[string(r.Key)] = true
	}
	for _, op := range branch {
		r := op.GetRequestDeleteRange()
		if r == nil || len(put) == 0 {
			continue
		}
		deleted := span{r.Key, r.RangeEnd}
		if deleted.unbounded() { // etcd overlooks the overlap then
			return unimplemented(`DeleteRangeRequest.range_end "\x00" beside a put`)
		}
		for key := range put {
			if deleted.contains([]byte(key)) {
				return rpctypes.ErrGRPCDuplicateKey
			}
		}
	}
	return nil
}
