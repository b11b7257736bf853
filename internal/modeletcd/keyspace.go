package modeletcd

import (
	"bytes"
	"slices"
	"sort"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// keyspace is the multi-version store of keys.
type keyspace struct {
	rev       int64                  // of the last change; an empty store has 1
	compacted int64                  // reads below it fail; -1 = never
	versions  map[string][]*revision // of each key that any readable revision holds, oldest first
	order     []string               // the keys of versions, sorted
	log       [][]*mvccpb.Event      // by revision, never compacted
	times     []time.Time            // by revision: when it was made
	bytes     int64                  // of all versions
}

// revision is a version of a key. A tombstone has no key-value pair.
type revision struct {
	at int64
	kv *mvccpb.KeyValue
}

func newKeyspace() keyspace {
	return keyspace{rev: 1, compacted: -1, versions: make(map[string][]*revision), log: make([][]*mvccpb.Event, 2), times: make([]time.Time, 2)}
}

// at returns the pair of a key at a revision, or nil.
func (k *keyspace) at(key string, rev int64) *mvccpb.KeyValue {
	versions := k.versions[key]
	for i := len(versions) - 1; i >= 0; i-- {
		if versions[i].at <= rev {
			return versions[i].kv
		}
	}
	return nil
}

// span is a set of keys as requests name it: one key, or those from a key to before an end; the end "\x00" is
// behind all.
type span struct{ key, end []byte }

func (s span) contains(key []byte) bool {
	switch {
	case len(s.end) == 0:
		return bytes.Equal(key, s.key)
	case s.unbounded():
		return bytes.Compare(key, s.key) >= 0
	}
	return bytes.Compare(key, s.key) >= 0 && bytes.Compare(key, s.end) < 0
}

func (s span) unbounded() bool { return len(s.end) == 1 && s.end[0] == 0 }

// read returns the pairs of the span at a revision, in the order of the keys. They must not be changed.
func (k *keyspace) read(s span, rev int64) (kvs []*mvccpb.KeyValue) {
	if len(s.end) == 0 {
		if kv := k.at(string(s.key), rev); kv != nil {
			kvs = append(kvs, kv)
		}
		return kvs
	}
	for _, key := range k.order[sort.SearchStrings(k.order, string(s.key)):] {
		if !s.unbounded() && key >= string(s.end) {
			break
		}
		if kv := k.at(key, rev); kv != nil {
			kvs = append(kvs, kv)
		}
	}
	return kvs
}

// since returns the events from a revision on.
func (k *keyspace) since(rev int64) []*mvccpb.Event {
	return slices.Concat(k.log[min(max(rev, 0), int64(len(k.log))):]...)
}

// check returns the error of a read at a revision that is in the future, or compacted; 0 is the present.
func (k *keyspace) check(rev int64) error {
	switch {
	case rev > k.rev:
		return rpctypes.ErrGRPCFutureRev
	case rev > 0 && rev < k.compacted:
		return rpctypes.ErrGRPCCompacted
	}
	return nil
}

// compact forgets what no read at revision rev or later can see.
func (k *keyspace) compact(rev int64) error {
	switch {
	case rev <= k.compacted:
		return rpctypes.ErrGRPCCompacted
	case rev > k.rev:
		return rpctypes.ErrGRPCFutureRev
	}
	k.compacted = rev
	k.order = slices.DeleteFunc(k.order, func(key string) bool {
		versions := k.versions[key]
		for len(versions) > 0 && (len(versions) > 1 && versions[1].at <= rev || versions[0].at <= rev && versions[0].kv == nil) {
			k.bytes -= versions[0].bytes()
			versions = versions[1:]
		}
		k.versions[key] = versions
		if len(versions) == 0 {
			delete(k.versions, key)
		}
		return len(versions) == 0
	})
	return nil
}

// bytes is about what etcd's file holds for it.
func (r *revision) bytes() int64 {
	const revisionBytes = 17 // the key under which it is filed
	return revisionBytes + int64(len(r.kv.GetKey())+len(r.kv.GetValue()))
}

// write is a change of keys in the making: it becomes the next revision. Its reads see what it has done.
type write struct {
	*keyspace
	events []*mvccpb.Event
}

// current is the revision that reads within the write are of.
func (w *write) current() int64 {
	if len(w.events) > 0 {
		return w.rev + 1
	}
	return w.rev
}

// put sets a key. It keeps copies.
func (w *write) put(key, value []byte, lease int64) {
	kv := &mvccpb.KeyValue{
		Key: bytes.Clone(key), Value: bytes.Clone(value), Lease: lease,
		CreateRevision: w.rev + 1, ModRevision: w.rev + 1, Version: 1,
	}
	if before := w.at(string(key), w.rev+1); before != nil {
		kv.CreateRevision, kv.Version = before.CreateRevision, before.Version+1
	}
	w.add(string(key), &revision{at: w.rev + 1, kv: kv})
	w.events = append(w.events, &mvccpb.Event{Type: mvccpb.Event_PUT, Kv: kv})
}

// delete removes the keys of the span and returns what they were.
func (w *write) delete(s span) []*mvccpb.KeyValue {
	removed := w.read(s, w.current())
	for _, kv := range removed {
		w.add(string(kv.Key), &revision{at: w.rev + 1})
		gone := &mvccpb.KeyValue{Key: kv.Key, ModRevision: w.rev + 1}
		w.events = append(w.events, &mvccpb.Event{Type: mvccpb.Event_DELETE, Kv: gone})
	}
	return removed
}

func (k *keyspace) add(key string, r *revision) {
	if _, known := k.versions[key]; !known {
		i := sort.SearchStrings(k.order, key)
		k.order = slices.Insert(k.order, i, key)
	}
	k.versions[key] = append(k.versions[key], r)
	k.bytes += r.bytes()
}

func (k *keyspace) commit(w *write, now time.Time) {
	k.rev++
	k.log = append(k.log, w.events)
	k.times = append(k.times, now)
}

// clone returns a copy that the receiver of a response may do with as it likes.
func clone(kv *mvccpb.KeyValue) *mvccpb.KeyValue {
	return &mvccpb.KeyValue{
		Key: bytes.Clone(kv.Key), Value: bytes.Clone(kv.Value), Lease: kv.Lease,
		CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version,
	}
}

func clones(kvs []*mvccpb.KeyValue) []*mvccpb.KeyValue {
	all := make([]*mvccpb.KeyValue, len(kvs))
	for i, kv := range kvs {
		all[i] = clone(kv)
	}
	return all
}
