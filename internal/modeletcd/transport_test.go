package modeletcd_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"taskledger/internal/modeletcd"
)

var errCut = errors.New("cut")

// recorder is a Transport that records methods, and does with calls and deliveries what it is told.
type recorder struct {
	mu      sync.Mutex
	made    []string
	call    func(c modeletcd.Call) (proto.Message, error) // nil = once
	deliver []error                                       // of the next deliveries; nil = delivered
}

func (r *recorder) Call(_ context.Context, c modeletcd.Call) (proto.Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := c.Method
	if c.Writes {
		name += "!"
	}
	r.made = append(r.made, name)
	if r.call != nil {
		return r.call(c)
	}
	return c.Make()
}

func (r *recorder) Deliver(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.deliver) == 0 {
		return nil
	}
	err := r.deliver[0]
	r.deliver = r.deliver[1:]
	return err
}

func (r *recorder) methods() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.made)
}

func TestTransport_PassesEveryRequest(t *testing.T) {
	w := newWorld(t)
	r := &recorder{}
	c := w.connect(r)
	lease := w.grant(9)
	for _, request := range []func() error{
		func() error { _, err := c.Put(t.Context(), "a", ""); return err },
		func() error { _, err := c.Get(t.Context(), "a"); return err },
		func() error { _, err := c.Delete(t.Context(), "a"); return err },
		func() error { _, err := c.Txn(t.Context()).Then(clientv3.OpPut("a", "")).Commit(); return err },
		func() error { _, err := c.Txn(t.Context()).Then(clientv3.OpGet("a")).Commit(); return err },
		func() error { _, err := c.Compact(t.Context(), 2); return err },
		func() error { _, err := c.Grant(t.Context(), 9); return err },
		func() error { _, err := c.KeepAliveOnce(t.Context(), lease); return err },
		func() error { _, err := c.TimeToLive(t.Context(), lease); return err },
		func() error { _, err := c.Revoke(t.Context(), lease); return err },
		func() error { _, err := c.Status(t.Context(), "any"); return err },
		func() error { _, err := c.AlarmList(t.Context()); return err },
		func() error { _, err := c.Defragment(t.Context(), "any"); return err },
		func() error { _, err := c.MemberList(t.Context()); return err },
		func() error { resp := w.receive(c.Watch(t.Context(), "a", clientv3.WithRev(4))); return resp.Err() },
	} {
		if err := request(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"Put!", "Range", "DeleteRange!", "Txn!", "Txn", "Compact!", "LeaseGrant!", "LeaseKeepAlive!", "LeaseTimeToLive",
		"LeaseRevoke!", "Status", "Alarm", "Defragment", "MemberList", "Watch"}
	if got := r.methods(); !slices.Equal(got, want) {
		t.Errorf("calls are %q, want %q", got, want)
	}
}

func TestTransport_LosesDropsAndCopies(t *testing.T) {
	w := newWorld(t)
	r := &recorder{}
	c := w.connect(r)
	create := func() error {
		_, err := c.Txn(t.Context()).If(clientv3.Compare(clientv3.Version("a"), "=", 0)).Then(clientv3.OpPut("a", "")).Commit()
		return err
	}
	var late func() (proto.Message, error)
	r.call = func(c modeletcd.Call) (proto.Message, error) { late = c.Make; return nil, errCut }
	err := create()
	w.wantError(err, "cut")
	if code(err) != codes.Unavailable {
		t.Errorf("error is %v, want %s", err, codes.Unavailable)
	}
	w.wantKeys()
	r.call = func(c modeletcd.Call) (proto.Message, error) { return nil, errors.Join(errCut, ignore(c.Make())) }
	w.wantError(create(), "cut")
	w.wantKeys("a")
	rev := w.Revision()
	if err := ignore(late()); err != nil {
		t.Fatal(err)
	}
	if now := w.Revision(); now != rev {
		t.Errorf("late copy made revision %d after %d", now, rev)
	}
	r.call = func(c modeletcd.Call) (proto.Message, error) { return c.Make() }
	if _, err := c.Grant(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	r.call = func(c modeletcd.Call) (proto.Message, error) {
		if err := ignore(c.Make()); err != nil {
			return nil, err
		}
		return c.Make()
	}
	if _, err := c.Grant(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	if all := w.Leases(); len(all) != 3 {
		t.Errorf("leases are %v, want one of each copy", all)
	}
}

func ignore(_ proto.Message, err error) error { return err }

// receive waits for the next response of a watch.
func (w *world) receive(c clientv3.WatchChan) clientv3.WatchResponse {
	w.Helper()
	select {
	case resp, open := <-c:
		if !open {
			w.Fatal("watch ended without an error")
		}
		return resp
	case <-time.After(timeout):
		w.Fatalf("watch told nothing within %s", timeout)
	}
	return clientv3.WatchResponse{}
}

// next waits for the next events of a watch.
func (w *world) next(c clientv3.WatchChan) (keys []string) {
	w.Helper()
	resp := w.receive(c)
	if err := resp.Err(); err != nil {
		w.Fatal(err)
	}
	for _, ev := range resp.Events {
		keys = append(keys, string(ev.Kv.Key))
	}
	return keys
}

func TestTransport_BrokenWatchResumesWithoutGapOrRepetition(t *testing.T) {
	w := newWorld(t)
	r := &recorder{deliver: []error{nil, nil, errCut, nil, errCut}}
	c := w.connect(r)
	from := w.put("a")
	changes := c.Watch(t.Context(), "a", clientv3.WithRange("z"), clientv3.WithRev(from))
	if got := w.next(changes); !slices.Equal(got, []string{"a"}) {
		t.Errorf("told %q, want a", got)
	}
	w.put("b") // its delivery breaks the stream, and the next stream breaks, too
	w.put("c")
	var got []string
	for len(got) < 2 {
		got = append(got, w.next(changes)...)
	}
	if !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("told %q, want b and c", got)
	}
	if opened := r.methods(); len(opened) != 3 || w.Streams() != 1 {
		t.Errorf("calls are %q, and %d streams are open, want three and one", opened, w.Streams())
	}
}

func TestModel_BrokenWatchesEnd(t *testing.T) {
	w := newWorld(t)
	changes := w.client.Watch(t.Context(), "a", clientv3.WithCreatedNotify())
	if resp := w.receive(changes); !resp.Created {
		t.Fatalf("first response is %+v", resp)
	}
	w.BreakWatches(nil)
	resp := w.receive(changes)
	w.wantError(resp.Err(), "no leader")
}

func TestModel_WatchCatchesUpInBatches(t *testing.T) {
	w := newWorld(t)
	const puts = 1001
	for range puts {
		w.put("a")
	}
	changes := w.client.Watch(t.Context(), "a", clientv3.WithRev(2))
	if first, second := w.next(changes), w.next(changes); len(first) != puts-1 || len(second) != 1 {
		t.Errorf("responses of %d and %d events, want %d and 1", len(first), len(second), puts-1)
	}
}
