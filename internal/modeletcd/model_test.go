package modeletcd_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"taskledger/internal/modeletcd"
)

// world is a model with a clock that stands still, and a client.
type world struct {
	*testing.T
	*modeletcd.Model
	now    time.Time
	client *clientv3.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, now: time.Unix(1_000_000, 0)}
	w.Model = modeletcd.New(func() time.Time { return w.now })
	w.client = w.connect(modeletcd.Direct{})
	return w
}

func (w *world) connect(t modeletcd.Transport) *clientv3.Client {
	client := w.Connect(t)
	w.Cleanup(func() { client.Close() })
	return client
}

func (w *world) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.Tick()
}

func (w *world) grant(seconds int64) clientv3.LeaseID {
	w.Helper()
	resp, err := w.client.Grant(w.Context(), seconds)
	if err != nil {
		w.Fatal(err)
	}
	return resp.ID
}

func (w *world) put(key string, opts ...clientv3.OpOption) int64 {
	w.Helper()
	resp, err := w.client.Put(w.Context(), key, "v", opts...)
	if err != nil {
		w.Fatal(err)
	}
	return resp.Header.Revision
}

// wantKeys asserts what is stored.
func (w *world) wantKeys(want ...string) {
	w.Helper()
	resp, err := w.client.Get(w.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		w.Fatal(err)
	}
	var got []string
	for _, kv := range resp.Kvs {
		got = append(got, string(kv.Key))
	}
	if !slices.Equal(got, want) {
		w.Errorf("keys are %q, want %q", got, want)
	}
}

func (w *world) wantError(err error, want string) {
	w.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		w.Errorf("error is %v, want one with %q", err, want)
	}
}

func TestModel_LeaseTakesItsKeysInOneRevision(t *testing.T) {
	w := newWorld(t)
	lease := w.grant(5)
	w.put("a", clientv3.WithLease(lease))
	w.put("b", clientv3.WithLease(lease))
	rev := w.put("c")
	w.pass(5*time.Second - 1)
	w.wantKeys("a", "b", "c")
	w.pass(1)
	w.wantKeys("c")
	for _, c := range w.History(rev + 1) {
		if !c.Deleted || c.ModRevision != rev+1 {
			t.Errorf("change is %+v, want a deletion in revision %d", c, rev+1)
		}
	}
	if n, now := len(w.History(rev+1)), w.Revision(); n != 2 || now != rev+1 {
		t.Errorf("%d changes up to revision %d, want 2 in %d", n, now, rev+1)
	}
}

func TestModel_LeasesThatAreDueTogetherTakeARevisionEach(t *testing.T) {
	w := newWorld(t)
	first, second := w.grant(3), w.grant(2)
	w.put("first", clientv3.WithLease(first))
	rev := w.put("second", clientv3.WithLease(second))
	w.pass(time.Minute)
	var order []string
	for _, c := range w.History(rev + 1) {
		order = append(order, fmt.Sprint(c.Key, " ", c.ModRevision-rev))
	}
	if want := []string{"second 1", "first 2"}; !slices.Equal(order, want) {
		t.Errorf("deleted %q, want %q", order, want)
	}
}

func TestModel_KeepAliveRenewsUntilTheLeaseIsDue(t *testing.T) {
	w := newWorld(t)
	lease := w.grant(5)
	w.put("a", clientv3.WithLease(lease))
	w.pass(4 * time.Second)
	if resp, err := w.client.KeepAliveOnce(t.Context(), lease); err != nil || resp.TTL != 5 {
		t.Errorf("renewal brought %+v, error %v, want 5 s", resp, err)
	}
	w.pass(4 * time.Second)
	w.wantKeys("a")
	w.now = w.now.Add(time.Second) // due, and not yet revoked
	if _, err := w.client.KeepAliveOnce(t.Context(), lease); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("renewal of a lease that is due: %v, want %v", err, rpctypes.ErrLeaseNotFound)
	}
	w.wantKeys()
}

func TestModel_LeaderGivesAndTakesLeases(t *testing.T) {
	w := newWorld(t)
	lease := w.grant(5)
	w.put("a", clientv3.WithLease(lease))
	w.pass(4 * time.Second)
	w.ElectLeader()
	w.pass(5*time.Second + 900*time.Millisecond) // and the election time-out
	w.wantKeys("a")
	if !w.Expire(int64(lease)) {
		t.Error("no lease was revoked")
	}
	w.wantKeys()
	if w.Expire(int64(lease)) {
		t.Error("a lease that is gone was revoked")
	}
	if left := w.Leases(); len(left) != 0 {
		t.Errorf("leases %v are left", left)
	}
}

func TestModel_NewLeaderEndsLeasesInTheEnd(t *testing.T) {
	w := newWorld(t)
	w.put("a", clientv3.WithLease(w.grant(5)))
	w.ElectLeader()
	w.pass(6 * time.Second)
	w.wantKeys()
}

// The request that fills the store is applied all the same; the following ones are not.
func TestModel_FillsWithARequestThatIsApplied(t *testing.T) {
	for name, request := range map[string]func(context.Context, *clientv3.Client) error{
		"put": func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Put(ctx, "a", "v")
			return err
		},
		"txn": func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Txn(ctx).Then(clientv3.OpPut("a", "v")).Commit()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Fill()
			if _, err := w.client.Delete(t.Context(), "a"); err != nil { // fills nothing
				t.Errorf("delete: %v", err)
			}
			for range 2 {
				if err := request(t.Context(), w.client); !errors.Is(err, rpctypes.ErrNoSpace) {
					t.Errorf("%v, want %v", err, rpctypes.ErrNoSpace)
				}
			}
			w.wantKeys("a")
			if n := len(w.History(0)); n != 1 {
				t.Errorf("%d changes, want that of the first request", n)
			}
			if _, err := w.client.Grant(t.Context(), 5); !errors.Is(err, rpctypes.ErrNoSpace) || len(w.Leases()) != 0 {
				t.Errorf("a grant of a full store: %v, leases %v", err, w.Leases())
			}
		})
	}
	t.Run("grant", func(t *testing.T) {
		w := newWorld(t)
		w.Fill()
		if _, err := w.client.Grant(t.Context(), 5); !errors.Is(err, rpctypes.ErrNoSpace) || len(w.Leases()) != 1 {
			t.Errorf("%v, leases %v, want one and %v", err, w.Leases(), rpctypes.ErrNoSpace)
		}
	})
}

func TestModel_HistoryTellsWhenKeysChanged(t *testing.T) {
	w := newWorld(t)
	first := w.now
	w.put("a")
	w.pass(time.Minute)
	w.put("a")
	if h := w.History(0); !h[0].At.Equal(first) || !h[1].At.Equal(first.Add(time.Minute)) {
		t.Errorf("changed at %s and %s, want %s and a minute later", h[0].At, h[1].At, first)
	}
}

func TestModel_LeaseLastsTwoSecondsAtLeast(t *testing.T) {
	w := newWorld(t)
	resp, err := w.client.Grant(t.Context(), 0)
	if err != nil || resp.TTL != 2 {
		t.Errorf("grant is %+v, error %v, want 2 s", resp, err)
	}
}

func TestModel_HistoryOutlivesCompaction(t *testing.T) {
	w := newWorld(t)
	first := w.put("a")
	last := w.put("a")
	if _, err := w.client.Compact(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	history := w.History(0)
	if len(history) != 2 || history[0].ModRevision != first || history[1].CreateRevision != first || string(history[1].Value) != "v" {
		t.Errorf("history is %+v, want puts of revisions %d and %d", history, first, last)
	}
	if none := w.History(last + 9); none != nil {
		t.Errorf("history of the future is %+v", none)
	}
}

func TestModel_KeepsNoBytesOfTheCaller(t *testing.T) {
	w := newWorld(t)
	value := []byte("one")
	op := clientv3.OpPut("a", "")
	op.WithValueBytes(value)
	if _, err := w.client.Do(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	copy(value, "two")
	for range 2 {
		resp, err := w.client.Get(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(resp.Kvs[0].Value); got != "one" {
			t.Errorf("value is %q", got)
		}
		copy(resp.Kvs[0].Value, "two")
	}
}

func TestModel_TellsHowFullItIs(t *testing.T) {
	w := newWorld(t)
	status := func() *clientv3.StatusResponse {
		t.Helper()
		resp, err := w.client.Status(t.Context(), "any")
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	for range 10 {
		w.put("a")
	}
	full := status()
	if _, err := w.client.Compact(t.Context(), w.Revision()); err != nil {
		t.Fatal(err)
	}
	compacted := status()
	if compacted.DbSize != full.DbSize || compacted.DbSizeInUse >= full.DbSizeInUse {
		t.Errorf("%d of %d bytes in use, after compaction %d of %d", full.DbSizeInUse, full.DbSize, compacted.DbSizeInUse, compacted.DbSize)
	}
	if _, err := w.client.Defragment(t.Context(), "any"); err != nil {
		t.Fatal(err)
	}
	if s := status(); s.DbSize != compacted.DbSizeInUse || s.Version != "3.7.3" || len(s.Errors) != 0 {
		t.Errorf("status is %v, want %d bytes", (*pb.StatusResponse)(s), compacted.DbSizeInUse)
	}
	if _, err := w.client.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Compact(t.Context(), w.Revision()); err != nil {
		t.Fatal(err)
	}
	if s := status(); s.DbSizeInUse != 0 {
		t.Errorf("%d bytes of an empty store are in use", s.DbSizeInUse)
	}
	w.SetFull(true)
	if s := status(); len(s.Errors) != 1 || !strings.Contains(s.Errors[0], "NOSPACE") {
		t.Errorf("errors of a full store are %q", s.Errors)
	}
	if _, err := w.client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	w.put("b")
}

func TestModel_RefusesWhatItDoesNotModel(t *testing.T) {
	w := newWorld(t)
	watch := func(opts ...clientv3.OpOption) error {
		resp := w.receive(w.connect(modeletcd.Direct{}).Watch(t.Context(), "a", opts...)) // a client keeps a stream that has failed for a while
		return resp.Err()
	}
	for want, request := range map[string]func() error{
		"request_txn": func() error {
			_, err := w.client.Do(t.Context(), clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpTxn(nil, nil, nil)}, nil))
			return err
		},
		"RangeStream": func() error {
			_, err := w.client.GetStream(t.Context(), "a")
			return err
		},
		"LeaseLeases":  func() error { _, err := w.client.Leases(t.Context()); return err },
		"MemberRemove": func() error { _, err := w.client.MemberRemove(t.Context(), 1); return err },
		"UserList":     func() error { _, err := w.client.UserList(t.Context()); return err },
		"HashKV":       func() error { _, err := w.client.HashKV(t.Context(), "any", 0); return err },
		"range_end": func() error {
			_, err := w.client.Do(t.Context(), clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("a", ""), clientv3.OpDelete("b", clientv3.WithFromKey())}, nil))
			return err
		},
		"progress_notify": func() error { return watch(clientv3.WithProgressNotify()) },
		"prev_kv":         func() error { return watch(clientv3.WithPrevKV()) },
	} {
		err := request()
		w.wantError(err, want)
		if c := code(err); c != codes.Unimplemented {
			t.Errorf("%s: code %s, want %s", want, c, codes.Unimplemented)
		}
	}
}

func TestModel_RefusesRequestsForProgress(t *testing.T) {
	w := newWorld(t)
	changes := w.client.Watch(t.Context(), "a", clientv3.WithCreatedNotify())
	if resp := w.receive(changes); !resp.Created {
		t.Fatalf("first response is %+v", resp)
	}
	if err := w.client.RequestProgress(t.Context()); err != nil {
		t.Fatal(err)
	}
	resp := w.receive(changes)
	w.wantError(resp.Err(), "progress_request")
}

func TestModel_RequestOfAnEndedContextIsNotMade(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.client.Put(ctx, "a", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v, want %v", err, context.Canceled)
	}
	if _, err := w.client.KeepAliveOnce(ctx, w.grant(9)); !errors.Is(err, context.Canceled) {
		t.Errorf("renewal: %v, want %v", err, context.Canceled)
	}
	w.wantKeys()
}
