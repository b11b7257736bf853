package main

import (
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

// Members tell the same changes, each at its own pace.
func TestRecorder_KeepsEachChangeOnce(t *testing.T) {
	all := []*clientv3.Event{
		event(clientv3.EventTypePut, "taskledger/node/a", 2, nil),
		event(clientv3.EventTypePut, "taskledger/owner/3", 3, ownerValue("a")),
		event(clientv3.EventTypePut, "taskledger/journal/3/0000000000000001", 4, nil),
		event(clientv3.EventTypeDelete, "taskledger/node/a", 5, nil),
		event(clientv3.EventTypeDelete, "taskledger/node/b", 5, nil),
		event(clientv3.EventTypePut, "taskledger-mark", 6, nil),
	}
	r := &recorder{}
	for _, events := range [][]*clientv3.Event{all[:2], all[:1], all[1:5], all[:3], all} {
		r.note(clientv3.WatchResponse{Events: events})
	}
	want := []history.KeyChange{{Revision: 2, Node: "a"}, {Revision: 3, Shard: 3, Owner: "a"}, {Revision: 5, Node: "a", Deleted: true},
		{Revision: 5, Node: "b", Deleted: true}}
	got, err := r.all(t.Context(), 6)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if !r.gone("a") || r.gone("c") {
		t.Errorf("a is gone: %t, c: %t", r.gone("a"), r.gone("c"))
	}
}

func TestRecorder_ReportsWhatItCannotRead(t *testing.T) {
	for _, e := range []*clientv3.Event{event(clientv3.EventTypePut, "taskledger/owner/x", 2, ownerValue("a")),
		event(clientv3.EventTypePut, "taskledger/owner/1", 2, []byte("damaged"))} {
		r := &recorder{}
		r.note(clientv3.WatchResponse{Events: []*clientv3.Event{e}})
		if _, err := r.all(t.Context(), 2); err == nil {
			t.Errorf("%s is read", e.Kv)
		}
	}
}
