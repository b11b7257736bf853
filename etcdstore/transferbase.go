package etcdstore

import (
	"encoding/binary"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxBase bounds the base of a cluster's revisions: a sum of it and a revision of etcd is far from the largest number.
const maxBase = 1 << 62

// fromBase returns compares with revisions that count from a base as etcd compares them. 0 stands for absence.
func fromBase(base int64, compares []clientv3.Cmp) []clientv3.Cmp {
	if base == 0 {
		return compares
	}
	all := make([]clientv3.Cmp, len(compares))
	for i := range compares {
		all[i] = compares[i].Clone()
		switch value := all[i].GetCompare().TargetUnion.(type) {
		case *pb.Compare_CreateRevision:
			value.CreateRevision = below(base, value.CreateRevision)
		case *pb.Compare_ModRevision:
			value.ModRevision = below(base, value.ModRevision)
		}
	}
	return all
}

// below returns the revision of etcd; -1 for one that none of its keys can have.
func below(base, revision int64) int64 {
	switch {
	case revision == 0:
		return 0
	case revision <= base:
		return -1
	}
	return revision - base
}

// overBase makes the revisions in a header and in the keys that it came with count from a base.
func overBase(base int64, header *pb.ResponseHeader, all []*mvccpb.KeyValue) {
	if base == 0 {
		return
	}
	if header != nil {
		header.Revision += base
	}
	for i, kv := range all {
		all[i] = keyOverBase(base, kv)
	}
}

// keyOverBase returns a key whose revisions count from a base. Other readers in this process may have kv itself.
func keyOverBase(base int64, kv *mvccpb.KeyValue) *mvccpb.KeyValue {
	if base == 0 {
		return kv
	}
	return &mvccpb.KeyValue{
		Key:            kv.Key,
		CreateRevision: kv.CreateRevision + base,
		ModRevision:    kv.ModRevision + base,
		Version:        kv.Version,
		Value:          kv.Value,
		Lease:          kv.Lease,
	}
}

// txnOverBase makes the revisions in the answer to a transaction count from a base.
func txnOverBase(base int64, resp *clientv3.TxnResponse) {
	if base == 0 {
		return
	}
	overBase(base, resp.Header, nil)
	for _, r := range resp.Responses {
		if read := r.GetResponseRange(); read != nil {
			overBase(base, nil, read.Kvs)
		}
	}
}

// carrier begins the value of an entry that was copied from another store. No entry begins so: in msgpack the byte is
// never used.
const carrier = 0xc1

// carriedBytes is the length of what stands before a copied entry.
const carriedBytes = 9

// carry returns the value of an entry that keeps the revision which it had in the store that it was copied from.
func carry(revision int64, entry []byte) []byte {
	value := make([]byte, 0, carriedBytes+len(entry))
	value = binary.BigEndian.AppendUint64(append(value, carrier), uint64(revision))
	return append(value, entry...)
}

// carried returns the entry in a value and the revision that it keeps; 0 = it keeps none. What begins like a copied
// entry and is none is left to whoever decodes it.
func carried(value []byte) (revision int64, entry []byte) {
	if len(value) < carriedBytes || value[0] != carrier {
		return 0, value
	}
	revision = int64(binary.BigEndian.Uint64(value[1:carriedBytes]))
	if revision <= 0 || revision > maxBase {
		return 0, value
	}
	return revision, value[carriedBytes:]
}
