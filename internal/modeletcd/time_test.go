package modeletcd_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/internal/testcluster"
)

// A lease that nobody renews ends by time, at both: its keys go in one revision, which watches see.
func TestModel_EndsLeasesAsEtcdDoes(t *testing.T) {
	t.Parallel()
	etcd := startEtcd(t)
	m := modeledWithTicks(t)
	told := func(s *side) (all []string) {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		_, err := s.leases.LeaseGrant(ctx, &pb.LeaseGrantRequest{ID: firstLease, TTL: 2})
		s.must(nil, err)
		for _, key := range []string{"b", "a", "kept"} {
			_, err := s.client.Put(ctx, key, "", clientv3.WithLease(firstLease))
			s.must(nil, err)
		}
		put, err := s.client.Put(ctx, "kept", "")
		s.must(nil, err)
		last := put.Header.Revision
		for resp := range s.client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(last+1)) {
			s.must(nil, resp.Err())
			for _, ev := range resp.Events {
				all = append(all, fmt.Sprintf("%s %s at %d", ev.Type, ev.Kv.Key, ev.Kv.ModRevision-last))
			}
			if len(all) >= 2 {
				break
			}
		}
		_, err = s.client.KeepAliveOnce(ctx, firstLease)
		return append(all, outcome(err))
	}
	if want, got := told(etcd), told(m); !slices.Equal(got, want) {
		t.Errorf("model %q\netcd  %q", got, want)
	}
}

// Pages of one revision show the keys of that revision, whatever is written meanwhile.
func TestModel_PagesAsEtcdDoes(t *testing.T) {
	t.Parallel()
	etcd, model := startEtcd(t), newModel()
	t.Cleanup(func() { model.client.Close() })
	pages := func(s *side) (all []string) {
		for i := range 7 {
			_, err := s.client.Put(t.Context(), fmt.Sprintf("k%d", i), "old")
			s.must(nil, err)
		}
		from, rev := "k", int64(0)
		for n := 0; ; n++ {
			resp, err := s.client.Get(t.Context(), from, clientv3.WithRange("l"), clientv3.WithLimit(3), clientv3.WithRev(rev))
			s.must(nil, err)
			if rev == 0 {
				rev = resp.Header.Revision
			}
			page := fmt.Sprintf("of %d, more %v:", resp.Count, resp.More)
			for _, kv := range resp.Kvs {
				page += fmt.Sprintf(" %s=%s", kv.Key, kv.Value)
				from = string(kv.Key) + "\x00"
			}
			all = append(all, page)
			if !resp.More {
				return all
			}
			for _, key := range []string{fmt.Sprint("k4", n), "k5"} {
				_, err := s.client.Put(t.Context(), key, "new")
				s.must(nil, err)
			}
			_, err = s.client.Delete(t.Context(), "k6")
			s.must(nil, err)
		}
	}
	if want, got := pages(etcd), pages(model); !slices.Equal(got, want) {
		t.Errorf("model %q\netcd  %q", got, want)
	}
}

// Status and alarms tell of a full store alike.
func TestModel_TellsOfAlarmsAsEtcdDoes(t *testing.T) {
	t.Parallel()
	etcd, model := startEtcd(t), newModel()
	t.Cleanup(func() { model.client.Close() })
	told := func(s *side) (all []string) {
		for _, full := range []bool{false, true} {
			s.setFull(t.Context(), full)
			status, err := s.client.Status(t.Context(), s.at)
			s.must(nil, err)
			alarms, err := s.client.AlarmList(t.Context())
			s.must(nil, err)
			kinds := []string{}
			for _, a := range alarms.Alarms {
				kinds = append(kinds, fmt.Sprint(a.Alarm, a.MemberID == status.Header.MemberId))
			}
			all = append(all, fmt.Sprint(len(status.Errors), kinds))
		}
		_, err := s.client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
		s.must(nil, err)
		alarms, err := s.client.AlarmList(t.Context())
		s.must(nil, err)
		_, err = s.client.Put(t.Context(), "k", "v")
		return append(all, fmt.Sprint(len(alarms.Alarms), outcome(err)))
	}
	if want, got := told(etcd), told(model); !slices.Equal(got, want) {
		t.Errorf("model %q\netcd  %q", got, want)
	}
}

// A store that fills while writes are under way applies some that it answers with "no space": Model.Fill does the same.
func TestModel_FillsAsEtcdDoes(t *testing.T) {
	t.Parallel()
	const rounds, writers, bytes = 10, 64, 64 << 10
	for range rounds {
		_, client := testcluster.StartSmallEtcd(t, 4<<20)
		var mu sync.Mutex
		refused := map[string]bool{}
		var all sync.WaitGroup
		value := string(make([]byte, bytes))
		for i := range writers {
			all.Go(func() {
				for j := range 8 {
					key := fmt.Sprintf("k%d-%d", i, j)
					if _, err := client.Put(t.Context(), key, value); err != nil {
						if outcome(err) != noSpaceText {
							t.Errorf("put: %v", err)
						}
						mu.Lock()
						refused[key] = true
						mu.Unlock()
						return
					}
				}
			})
		}
		all.Wait()
		there, err := client.Get(t.Context(), "k", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range there.Kvs {
			if refused[string(kv.Key)] {
				return // applied, and answered with an error
			}
		}
	}
	t.Errorf("in %d stores that became full no refused write was applied", rounds)
}

const noSpaceText = "ResourceExhausted: etcdserver: mvcc: database space exceeded"

// modeledWithTicks is a model whose leases end by the clock, which is looked at as often as etcd does.
func modeledWithTicks(t *testing.T) *side {
	t.Helper()
	s, m := newTickingModel()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				m.Tick()
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		s.client.Close()
	})
	return s
}
