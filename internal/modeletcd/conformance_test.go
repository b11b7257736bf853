package modeletcd_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"
)

// TestModel_DoesAsEtcdDoes makes the same random requests to the model and to a real etcd.
func TestModel_DoesAsEtcdDoes(t *testing.T) {
	t.Parallel()
	etcd := startEtcd(t)
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		p := &pair{T: t, ctx: ctx, model: newModel(), etcd: etcd}
		defer p.model.client.Close()
		defer p.awaitEnds() // a client that is closed while a watch of it ends may hang: its run no longer takes what the watch tells it
		defer cancel()
		p.reset()
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.step(rapid.SampledFrom(steps).Draw(t, "step"))
		}
		p.end()
	})
}

// steps are weighted by how often they are named.
var steps = []string{
	"put", "put", "put", "put", "txn", "txn", "txn", "txn", "txn", "get", "get", "get", "delete", "delete",
	"grant", "grant", "revoke", "keep alive", "time to live", "compact", "watch", "watch", "full",
}

const (
	firstLease, lastLease = 101, 104
	unwatched             = "unwatched"
)

var keys = []string{"a", "ab", "b", "c", "c\x00", "d"}

// pair is the two systems in one run. Revisions are drawn, and compared, relative to that at the beginning.
type pair struct {
	*rapid.T
	ctx         context.Context
	model, etcd *side
	now         int64 // the present revision
	compacted   int64
	floor       int64 // a compaction must not overtake a watch that the real etcd may not have begun to serve
	watched     []watched
	opened      []clientv3.WatchChan // on either side
}

// do makes a request to both, and asserts that they answer the same.
func (p *pair) do(what string, request func(s *side) answer) answer {
	p.Helper()
	want, got := request(p.etcd), request(p.model)
	if got.text != want.text {
		p.Fatalf("%s:\nmodel %s\netcd  %s", what, got.text, want.text)
	}
	if want.revision != 0 {
		p.now = want.revision - p.etcd.base
	}
	return want
}

// reset brings both to an empty store that is compacted to the present, with two leases.
func (p *pair) reset() {
	for _, s := range []*side{p.model, p.etcd} {
		s.setFull(p.ctx, false)
		for id := int64(firstLease); id <= lastLease; id++ {
			_, _ = s.leases.LeaseRevoke(p.ctx, &pb.LeaseRevokeRequest{ID: id}) // it may not be there
		}
		for range 4 {
			s.must(s.client.Put(p.ctx, unwatched, ""))
		}
		deleted, err := s.client.Delete(p.ctx, "\x00", clientv3.WithFromKey())
		s.must(deleted, err)
		s.base = deleted.Header.Revision
		s.must(s.client.Compact(p.ctx, s.base))
		for _, id := range []int64{firstLease, firstLease + 1} {
			s.must(s.leases.LeaseGrant(p.ctx, &pb.LeaseGrantRequest{ID: id, TTL: 1000}))
		}
	}
	p.floor = math.MaxInt64
}

func (p *pair) step(name string) {
	switch name {
	case "put", "get", "delete":
		op := p.op(name)
		p.do(name, func(s *side) answer { return s.do(p.ctx, op(s)) })
	case "txn":
		p.txn()
	case "grant":
		r := &pb.LeaseGrantRequest{ID: p.lease(), TTL: rapid.Int64Range(2, 9_000_000_001).Draw(p.T, "ttl")}
		p.do(fmt.Sprint(name, r), func(s *side) answer { return s.grant(p.ctx, r) })
	case "revoke":
		id := p.lease()
		p.do(fmt.Sprint(name, id), func(s *side) answer { return s.revoke(p.ctx, id) })
	case "keep alive":
		id := p.lease()
		p.do(fmt.Sprint(name, id), func(s *side) answer { return s.keepAlive(p.ctx, id) })
	case "time to live":
		id := p.lease()
		p.do(fmt.Sprint(name, id), func(s *side) answer { return s.timeToLive(p.ctx, id) })
	case "compact":
		rev := min(p.revision(), p.floor)
		if a := p.do(name, func(s *side) answer { return s.compact(p.ctx, rev) }); a.err == nil {
			p.compacted = rev
		}
	case "watch":
		p.watch()
	case "full":
		full := p.flag("full")
		p.model.setFull(p.ctx, full)
		p.etcd.setFull(p.ctx, full)
	}
}

func (p *pair) key() string {
	return rapid.SampledFrom(keys).Draw(p.T, "key")
}

func (p *pair) lease() int64 { return rapid.Int64Range(firstLease, lastLease).Draw(p.T, "lease") }

// revision draws one from before the beginning up to the near future.
func (p *pair) revision() int64 { return rapid.Int64Range(-2, p.now+2).Draw(p.T, "revision") }

// span draws the end of a range that begins at a key.
func (p *pair) span() []clientv3.OpOption {
	if p.flag("from key") {
		return []clientv3.OpOption{clientv3.WithFromKey()}
	}
	return p.boundedSpan()
}

func (p *pair) boundedSpan() []clientv3.OpOption {
	switch rapid.SampledFrom([]string{"key", "range", "prefix"}).Draw(p.T, "span") {
	case "range":
		return []clientv3.OpOption{clientv3.WithRange(p.key())}
	case "prefix":
		return []clientv3.OpOption{clientv3.WithPrefix()}
	}
	return nil
}

func (p *pair) flag(name string) bool { return rapid.IntRange(0, 4).Draw(p.T, name) == 4 }

// op draws an operation. Revisions in it depend on the side that it is for.
func (p *pair) op(name string) func(s *side) clientv3.Op {
	key := p.key()
	switch name {
	case "put":
		return p.put(key)
	case "get":
		return p.get(key)
	}
	return p.delete(key, p.span())
}

func (p *pair) delete(key string, opts []clientv3.OpOption) func(s *side) clientv3.Op {
	if p.flag("previous") {
		opts = append(opts, clientv3.WithPrevKV())
	}
	return func(*side) clientv3.Op { return clientv3.OpDelete(key, opts...) }
}

func (p *pair) put(key string) func(s *side) clientv3.Op {
	value := rapid.SampledFrom([]string{"", "v", "w", "x"}).Draw(p.T, "value")
	var opts []clientv3.OpOption
	if p.flag("previous") {
		opts = append(opts, clientv3.WithPrevKV())
	}
	if p.flag("ignore value") {
		value = ""
		opts = append(opts, clientv3.WithIgnoreValue())
	}
	if p.flag("ignore lease") {
		opts = append(opts, clientv3.WithIgnoreLease())
	} else if rapid.Bool().Draw(p.T, "leased") {
		opts = append(opts, clientv3.WithLease(clientv3.LeaseID(p.lease())))
	}
	return func(*side) clientv3.Op { return clientv3.OpPut(key, value, opts...) }
}

func (p *pair) get(key string) func(s *side) clientv3.Op {
	opts := p.span()
	if p.flag("limited") {
		opts = append(opts, clientv3.WithLimit(rapid.Int64Range(1, 3).Draw(p.T, "limit")))
	}
	if p.flag("keys only") {
		opts = append(opts, clientv3.WithKeysOnly())
	}
	if p.flag("count only") {
		opts = append(opts, clientv3.WithCountOnly())
	}
	if p.flag("sorted") {
		target := clientv3.SortTarget(rapid.IntRange(0, 4).Draw(p.T, "target"))
		opts = append(opts, clientv3.WithSort(target, clientv3.SortOrder(rapid.IntRange(0, 2).Draw(p.T, "order"))))
	}
	var bounds []func(int64) clientv3.OpOption
	if p.flag("at revision") {
		bounds = append(bounds, clientv3.WithRev)
	}
	if p.flag("bounded") {
		bounds = append(bounds, rapid.SampledFrom([]func(int64) clientv3.OpOption{
			clientv3.WithMinModRev, clientv3.WithMaxModRev, clientv3.WithMinCreateRev, clientv3.WithMaxCreateRev,
		}).Draw(p.T, "bound"))
	}
	rev := p.revision()
	return func(s *side) clientv3.Op {
		all := slices.Clone(opts)
		for _, bound := range bounds {
			all = append(all, bound(s.base+rev))
		}
		return clientv3.OpGet(key, all...)
	}
}

func (p *pair) txn() {
	var compares []func(*side) clientv3.Cmp
	for range rapid.IntRange(0, 2).Draw(p.T, "compares") {
		compares = append(compares, p.compare())
	}
	branch := func() (ops []func(*side) clientv3.Op) {
		for range rapid.IntRange(0, 4).Draw(p.T, "operations") {
			switch name := rapid.SampledFrom([]string{"put", "put", "get", "delete"}).Draw(p.T, "operation"); name {
			case "delete": // one without an end is not modelled beside a put
				ops = append(ops, p.delete(p.key(), p.boundedSpan()))
			default:
				ops = append(ops, p.op(name))
			}
		}
		return ops
	}
	then, otherwise := branch(), branch()
	p.do("txn", func(s *side) answer {
		var cmps []clientv3.Cmp
		for _, c := range compares {
			cmps = append(cmps, c(s))
		}
		return s.do(p.ctx, clientv3.OpTxn(cmps, on(s, then), on(s, otherwise)))
	})
}

func on(s *side, ops []func(*side) clientv3.Op) (made []clientv3.Op) {
	for _, op := range ops {
		made = append(made, op(s))
	}
	return made
}

func (p *pair) compare() func(s *side) clientv3.Cmp {
	key := p.key()
	how := rapid.SampledFrom([]string{"=", "!=", "<", ">"}).Draw(p.T, "how")
	var ranged func(clientv3.Cmp) clientv3.Cmp
	switch rapid.SampledFrom([]string{"key", "key", "prefix", "range"}).Draw(p.T, "compared") {
	case "key":
		ranged = func(c clientv3.Cmp) clientv3.Cmp { return c }
	case "prefix":
		ranged = clientv3.Cmp.WithPrefix
	case "range":
		end := p.key()
		ranged = func(c clientv3.Cmp) clientv3.Cmp { return c.WithRange(end) }
	}
	absent, rev := rapid.Bool().Draw(p.T, "absent"), p.revision()
	revision := func(s *side) int64 {
		if absent {
			return 0
		}
		return s.base + rev
	}
	target := rapid.SampledFrom([]string{"mod", "mod", "create", "create", "version", "value", "lease"}).Draw(p.T, "target")
	version, value, lease := rapid.Int64Range(0, 3).Draw(p.T, "version"), rapid.SampledFrom([]string{"", "v", "w"}).Draw(p.T, "value"), p.lease()
	if p.flag("no lease") {
		lease = 0
	}
	return func(s *side) clientv3.Cmp {
		switch target {
		case "mod":
			return ranged(clientv3.Compare(clientv3.ModRevision(key), how, revision(s)))
		case "create":
			return ranged(clientv3.Compare(clientv3.CreateRevision(key), how, revision(s)))
		case "version":
			return ranged(clientv3.Compare(clientv3.Version(key), how, version))
		case "value":
			return ranged(clientv3.Compare(clientv3.Value(key), how, value))
		}
		return ranged(clientv3.Compare(clientv3.LeaseValue(key), how, lease))
	}
}

// timeout bounds one random run.
const timeout = 30 * time.Second
