package cluster

import (
	"fmt"
	"reflect"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/integration/robustness/history"
	"taskledger/internal/wire"
)

func event(kind mvccpb.Event_EventType, key string, revision int64, value []byte) *clientv3.Event {
	return &clientv3.Event{Type: kind, Kv: &mvccpb.KeyValue{Key: []byte(key), ModRevision: revision, Value: value}}
}

func ownerValue(session string) []byte {
	w := wire.Writer{}
	w.Array(2)
	w.Uint(1)
	w.Text(session)
	return w.B
}

func nodeValue(slots int64) []byte {
	w := wire.Writer{}
	w.Array(11)
	w.Uint(1)
	for range 3 {
		w.Text("")
	}
	w.Array(0)
	w.Text("")
	w.Int(slots)
	w.Bool(true)
	w.Bool(false)
	w.Int(0)
	w.Bytes(nil)
	return w.B
}

// journalEvent is a change of an entry of shard 0.
func journalEvent(kind mvccpb.Event_EventType, number uint64, revision int64, data []byte) *clientv3.Event {
	e := event(kind, fmt.Sprintf("taskledger/journal/0/%016x", number), revision, data)
	e.Kv.CreateRevision = revision
	return e
}

// Members tell the same changes, each at its own pace.
func TestKeys_KeepsEachChangeOnce(t *testing.T) {
	all := []*clientv3.Event{
		event(clientv3.EventTypePut, "taskledger/node/a", 2, nodeValue(2)),
		event(clientv3.EventTypePut, "taskledger/owner/3", 3, ownerValue("a")),
		event(clientv3.EventTypePut, "taskledger/journal/3/0000000000000001", 4, []byte("entry")),
		event(clientv3.EventTypeDelete, "taskledger/node/a", 5, nil),
		event(clientv3.EventTypeDelete, "taskledger/node/b", 5, nil),
		event(clientv3.EventTypePut, "taskledger-mark", 6, nil),
	}
	r := &Keys{}
	for _, events := range [][]*clientv3.Event{all[:2], all[:1], all[1:5], all[:3], all} {
		r.Hear(clientv3.WatchResponse{Events: events})
	}
	want := []history.KeyChange{{Revision: 2, Node: "a", Slots: 2}, {Revision: 3, Shard: 3, Owner: "a"}, {Revision: 5, Node: "a", Deleted: true},
		{Revision: 5, Node: "b", Deleted: true}}
	got, err := r.Until(t.Context(), 6)
	for i := range got.Keys {
		if got.Keys[i].At == 0 {
			t.Errorf("%+v has no time", got.Keys[i])
		}
		got.Keys[i].At = 0
	}
	if err != nil || !reflect.DeepEqual(got.Keys, want) {
		t.Errorf("%+v, %v, want %+v", got.Keys, err, want)
	}
	if !r.Gone("a") || r.Gone("c") {
		t.Errorf("a is gone: %t, c: %t", r.Gone("a"), r.Gone("c"))
	}
}

// Somebody puts the key of a session without a lease; what becomes of the key later is no other end.
func TestKeys_ASessionEndsWithItsLease(t *testing.T) {
	r := &Keys{}
	r.Hear(clientv3.WatchResponse{Events: []*clientv3.Event{
		event(clientv3.EventTypePut, "taskledger/node/a", 2, nodeValue(2)),
		event(clientv3.EventTypePut, "taskledger/node/a", 3, []byte(Strange)),
		event(clientv3.EventTypeDelete, "taskledger/node/a", 4, nil),
	}})
	got, err := r.Until(t.Context(), 4)
	if err != nil || len(got.Keys) != 2 || got.Keys[1].Revision != 3 || !got.Keys[1].Deleted || !r.Gone("a") {
		t.Errorf("%+v, %v, want the end at revision 3", got.Keys, err)
	}
}

// A trim takes nothing from what was written.
func TestKeys_KeepsTrimmedEntries(t *testing.T) {
	all := []*clientv3.Event{
		journalEvent(clientv3.EventTypePut, 1, 2, []byte("one")),
		journalEvent(clientv3.EventTypePut, 2, 3, []byte("two")),
		journalEvent(clientv3.EventTypeDelete, 1, 4, nil),
		journalEvent(clientv3.EventTypeDelete, 2, 4, nil),
		journalEvent(clientv3.EventTypePut, 3, 5, []byte("three")),
		journalEvent(clientv3.EventTypePut, 4, 6, []byte("later")),
	}
	r := &Keys{}
	for _, events := range [][]*clientv3.Event{all[:2], all, all[:4]} {
		r.Hear(clientv3.WatchResponse{Events: events})
	}
	got, err := r.Until(t.Context(), 5)
	want := []history.Record{{Number: 1, Revision: 2, Created: 2, Data: []byte("one")}, {Number: 2, Revision: 3, Created: 3, Data: []byte("two")},
		{Number: 3, Revision: 5, Created: 5, Data: []byte("three")}}
	if err != nil || got.Trimmed != 2 || len(got.Keys) != 0 || len(got.Written.Entries) != Shards || !reflect.DeepEqual(got.Written.Entries[0], want) {
		t.Errorf("%+v, %v, want 2 trimmed of %+v", got, err, want)
	}
}

func TestKeys_ReportsWhatItCannotRead(t *testing.T) {
	for _, e := range []*clientv3.Event{event(clientv3.EventTypePut, "taskledger/owner/x", 2, ownerValue("a")),
		event(clientv3.EventTypePut, "taskledger/owner/1", 2, []byte("damaged")),
		event(clientv3.EventTypePut, "taskledger/journal/8/0000000000000001", 2, nil), event(clientv3.EventTypePut, "taskledger/journal/1/x", 2, nil)} {
		r := &Keys{}
		r.Hear(clientv3.WatchResponse{Events: []*clientv3.Event{e}})
		if _, err := r.Until(t.Context(), 2); err == nil {
			t.Errorf("%s is read", e.Kv)
		}
	}
}
