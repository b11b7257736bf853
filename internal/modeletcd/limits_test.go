package modeletcd_test

import (
	"fmt"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestModel_RefusesWhatEtcdRefuses makes requests at and over etcd's limits to the model and to a real etcd.
func TestModel_RefusesWhatEtcdRefuses(t *testing.T) {
	t.Parallel()
	etcd, model := startEtcd(t), newModel()
	t.Cleanup(func() { model.client.Close() })
	for _, s := range []*side{etcd, model} {
		s.base = 1
	}
	operations := map[string]clientv3.Op{
		"128 compares":       clientv3.OpTxn(compares(128), nil, nil),
		"129 compares":       clientv3.OpTxn(compares(129), nil, nil),
		"128 operations":     clientv3.OpTxn(nil, puts(128), nil),
		"129 operations":     clientv3.OpTxn(nil, puts(129), nil),
		"129 others":         clientv3.OpTxn(nil, nil, puts(129)),
		"nearly 1.5 MiB":     clientv3.OpPut("big", strings.Repeat("x", 3<<19-100)),
		"1.5 MiB":            clientv3.OpPut("big", strings.Repeat("x", 3<<19)),
		"1.5 MiB in one txn": clientv3.OpTxn(nil, append(puts(2), clientv3.OpPut("big", strings.Repeat("x", 3<<19))), nil),
		"1.5 MiB of reading": clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpGet(strings.Repeat("x", 3<<19))}, nil),
		"put of no key":      clientv3.OpPut("", "v"),
		"delete of no key":   clientv3.OpDelete(""),
		"get of no key":      clientv3.OpGet(""),
		"compare of no key":  clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Version(""), "=", 0)}, nil, nil),
		"txn put of no key":  clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("", "v")}, nil),
		"value to ignore":    clientv3.OpPut("k", "v", clientv3.WithIgnoreValue()),
		"lease to ignore":    clientv3.OpPut("k", "v", clientv3.WithIgnoreLease(), clientv3.WithLease(1)),
		"sort by nothing":    clientv3.OpGet("k", clientv3.WithSort(99, clientv3.SortDescend)),
		"two puts":           clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("k", "v"), clientv3.OpPut("k", "v")}, nil),
		"put and delete":     clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpDelete("j", clientv3.WithRange("l")), clientv3.OpPut("k", "v")}, nil),
	}
	for name, op := range operations {
		agree(t, name, model, etcd, func(s *side) string {
			_, err := s.client.Do(t.Context(), op)
			return outcome(err)
		})
	}
	for name, r := range map[string]*pb.LeaseGrantRequest{
		"lease":         {ID: 7, TTL: 100},
		"longest lease": {ID: 8, TTL: 9_000_000_000},
		"lease for all": {ID: 9, TTL: 9_000_000_001},
	} {
		agree(t, name, model, etcd, func(s *side) string {
			_, err := s.leases.LeaseGrant(t.Context(), r)
			_, again := s.leases.LeaseGrant(t.Context(), r)
			return outcome(err) + ", again " + outcome(again)
		})
	}
}

func agree(t *testing.T, name string, model, etcd *side, request func(*side) string) {
	t.Helper()
	if got, want := request(model), request(etcd); got != want {
		t.Errorf("%s:\nmodel %s\netcd  %s", name, got, want)
	}
}

func outcome(err error) string {
	if err == nil {
		return "done"
	}
	return fmt.Sprint(code(err), ": ", err)
}

func compares(n int) (all []clientv3.Cmp) {
	for i := range n {
		all = append(all, clientv3.Compare(clientv3.Version(fmt.Sprint(i)), "=", 0))
	}
	return all
}

func puts(n int) (all []clientv3.Op) {
	for i := range n {
		all = append(all, clientv3.OpPut(fmt.Sprint(i), "v"))
	}
	return all
}

// TestModel_LimitsInKeyOrderWhenNoOrderIsNamed sorts by something else than the key, without an order: etcd cuts first.
func TestModel_LimitsInKeyOrderWhenNoOrderIsNamed(t *testing.T) {
	t.Parallel()
	etcd, model := startEtcd(t), newModel()
	t.Cleanup(func() { model.client.Close() })
	for _, s := range []*side{etcd, model} {
		for _, key := range []string{"c", "b", "a"} {
			_, err := s.client.Put(t.Context(), key, "")
			s.must(nil, err)
		}
	}
	for _, order := range []clientv3.SortOrder{clientv3.SortNone, clientv3.SortAscend, clientv3.SortDescend} {
		agree(t, fmt.Sprint("order ", order), model, etcd, func(s *side) string {
			got, err := s.client.Get(t.Context(), "a", clientv3.WithFromKey(), clientv3.WithLimit(1), clientv3.WithSort(clientv3.SortByCreateRevision, order))
			s.must(nil, err)
			return fmt.Sprintf("%s of %d, more %v", got.Kvs[0].Key, got.Count, got.More)
		})
	}
}
