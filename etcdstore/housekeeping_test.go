package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

const smallQuota = 16 << 20

// newSmallFixture is newFixture with an etcd that is soon full, and can be defragmented through sound.
func newSmallFixture(t *testing.T) *fixture {
	t.Helper()
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	endpoint, raw := testcluster.StartSmallEtcd(t, smallQuota)
	f := fixtureOn(t, ctx, endpoint, raw)
	f.sound = openStore(t, etcdstore.Config{Cluster: cluster, Client: raw, Defragment: func(ctx context.Context) error {
		_, err := f.client.Defragment(ctx, endpoint)
		return err
	}})
	return f
}

// fill writes until etcd refuses.
func (f *fixture) fill() {
	f.Helper()
	chunk := strings.Repeat("x", 1<<20)
	for i := range 100 {
		_, err := f.raw.Put(f.ctx, fmt.Sprint("junk/", i), chunk)
		if errors.Is(err, rpctypes.ErrNoSpace) {
			return
		}
		f.must(err)
	}
	f.Fatal("etcd takes more than its quota")
}

// makeSpace does what an operator or the owner of the etcd does when it is full.
func (f *fixture) makeSpace() {
	f.Helper()
	resp, err := f.raw.Delete(f.ctx, "junk/", clientv3.WithPrefix())
	f.must(err)
	_, err = f.raw.Compact(f.ctx, resp.Header.Revision, clientv3.WithCompactPhysical()) // waits until it is done
	f.must(err)
	f.must(f.sound.Defragment(f.ctx))
}

func (f *fixture) usage() store.Usage {
	f.Helper()
	u, err := f.sound.Usage(f.ctx)
	f.must(err)
	return u
}

func TestFull_AppendIsTriedUntilThereIsSpace(t *testing.T) {
	f := newSmallFixture(t)
	o := f.own()
	one := f.append(o, store.Head{}, "one")
	f.fill()
	f.faults.Next()
	appended := make(chan error, 1)
	go func() {
		_, err := f.faulty.Append(f.ctx, o, one, []byte("two"))
		appended <- err
	}()
	testcluster.Await(t, "a second try", func() bool { return f.faults.Sent() > 1 })
	select {
	case err := <-appended:
		t.Fatalf("append to a full store ended: %v", err)
	default:
	}
	f.makeSpace()
	f.must(<-appended)
	f.wantEntries(0, "one", "two")
}

func TestFull_WritesEndWithErrFull(t *testing.T) {
	f := newSmallFixture(t)
	o := f.own()
	one := f.append(o, store.Head{}, "one")
	f.fill()
	for name, write := range map[string]func(context.Context) error{
		"append": func(ctx context.Context) error {
			_, err := f.faulty.Append(ctx, o, one, []byte("two"))
			return err
		},
		"part": func(ctx context.Context) error { return f.faulty.PutPart(ctx, o, 1, 0, []byte("part")) },
		"join": func(ctx context.Context) error {
			_, err := f.faulty.Join(ctx, store.NodeInfo{}, time.Minute)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(f.ctx, time.Second)
		err := write(ctx)
		cancel()
		if !errors.Is(err, store.ErrFull) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrRefused) {
			t.Errorf("%s: %v, want %v of unknown outcome", name, err, store.ErrFull)
		}
	}
}

func TestFull_TrimRenewAndLeaveWork(t *testing.T) {
	f := newSmallFixture(t)
	o := f.own()
	_, p := f.covered(o, 5)
	f.fill()
	if u := f.usage(); !u.Full || u.Quota != smallQuota || u.Size < smallQuota/2 {
		t.Errorf("usage is %+v, want a full store of %d", u, smallQuota)
	}
	f.must(f.faulty.Trim(f.ctx, o, p, 1, 4))
	f.wantEntries(0, "4", "5")
	f.must(f.faulty.Renew(f.ctx, o.Session))
	f.must(f.faulty.Leave(f.ctx, o.Session))
}

func TestDefragment_GivesSpaceBackAndEndsTheAlarm(t *testing.T) {
	f := newSmallFixture(t)
	f.fill()
	full := f.usage()
	f.makeSpace()
	if u := f.usage(); u.Full || u.Size >= full.Size/2 {
		t.Errorf("usage is %+v, was %+v", u, full)
	}
	f.own()
}

func TestDefragment_LeavesOtherAlarmsAlone(t *testing.T) {
	f := newSmallFixture(t)
	genuine := f.raw.Maintenance
	alarms := &alarmed{Maintenance: genuine}
	f.raw.Maintenance = alarms
	f.must(f.sound.Defragment(f.ctx))
	if len(alarms.disarmed) != 1 || alarms.disarmed[0].Alarm != etcdserverpb.AlarmType_NOSPACE || alarms.disarmed[0].MemberID != 7 {
		t.Errorf("disarmed %+v, want that of the full member 7 alone", alarms.disarmed)
	}
}

// alarmed says that two alarms are raised.
type alarmed struct {
	clientv3.Maintenance
	disarmed []*clientv3.AlarmMember
}

func (a *alarmed) AlarmList(context.Context) (*clientv3.AlarmResponse, error) {
	return &clientv3.AlarmResponse{Alarms: []*etcdserverpb.AlarmMember{
		{MemberID: 5, Alarm: etcdserverpb.AlarmType_CORRUPT},
		{MemberID: 7, Alarm: etcdserverpb.AlarmType_NOSPACE},
	}}, nil
}

func (a *alarmed) AlarmDisarm(_ context.Context, m *clientv3.AlarmMember) (*clientv3.AlarmResponse, error) {
	a.disarmed = append(a.disarmed, m)
	return &clientv3.AlarmResponse{}, nil
}

func TestDefragment_FailureIsReportedAndEndsNoAlarm(t *testing.T) {
	t.Parallel()
	_, raw := testcluster.StartEtcd(t)
	alarms := &alarmed{Maintenance: raw.Maintenance}
	raw.Maintenance = alarms
	broken := errors.New("disk")
	s := openStore(t, etcdstore.Config{Client: raw, Defragment: func(context.Context) error { return broken }})
	if err := s.Defragment(t.Context()); !errors.Is(err, broken) || len(alarms.disarmed) > 0 {
		t.Errorf("defragment: %v, disarmed %+v", err, alarms.disarmed)
	}
}

func TestCompact_DisturbsNoReader(t *testing.T) {
	f := newFixture(t)
	o := f.own()
	head, p := f.covered(o, 5)
	f.must(f.faulty.Trim(f.ctx, o, p, 1, 4))
	entries, stop := iter.Pull2(f.sound.Follow(f.ctx, 0, 4))
	defer stop()
	f.wantNext(entries, "4")
	head = f.append(o, head, "6")
	head = f.append(o, head, "7")
	f.must(f.sound.Compact(f.ctx, head.Revision))
	f.must(f.sound.Compact(f.ctx, head.Revision))
	f.must(f.sound.Compact(f.ctx, 1))
	for _, entry := range []string{"5", "6", "7"} {
		f.wantNext(entries, entry)
	}
	f.append(o, head, "8")
	f.wantNext(entries, "8")
	f.wantFirst(4)
	f.wantPointer(p)
	for part, err := range f.sound.Parts(f.ctx, 0, p.Kept[1]) {
		if string(part) != "older" || err != nil {
			t.Errorf("part is %q, %v", part, err)
		}
	}
}

// told answers for members that are no servers.
type told struct {
	clientv3.Maintenance
	members map[string]*clientv3.StatusResponse // by endpoint; nil = silent
}

func (a told) Status(ctx context.Context, endpoint string) (*clientv3.StatusResponse, error) {
	if status := a.members[endpoint]; status != nil {
		return status, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestUsage_IsTheWorstOfTheMembersThatAnswer(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	client := dial(t, endpoint)
	open := func(quota int64) *etcdstore.Store {
		return openStore(t, etcdstore.Config{Client: client, Quota: quota, RequestTimeout: time.Second})
	}
	unset, set := open(0), open(5<<30)
	client.SetEndpoints("a", "b", "c")
	members := map[string]*clientv3.StatusResponse{
		"a": {DbSizeInUse: 10, DbSize: 40, Header: &etcdserverpb.ResponseHeader{Revision: 7}},
		"b": {DbSizeInUse: 20, DbSize: 30, Header: &etcdserverpb.ResponseHeader{Revision: 6}},
	}
	client.Maintenance = told{members: members}
	want := func(s *etcdstore.Store, want store.Usage) {
		t.Helper()
		if got, err := s.Usage(t.Context()); got != want || err != nil {
			t.Errorf("usage is %+v, %v, want %+v", got, err, want)
		}
	}
	want(unset, store.Usage{InUse: 20, Size: 40, Quota: 2 << 30, Revision: 7})
	want(set, store.Usage{InUse: 20, Size: 40, Quota: 5 << 30, Revision: 7})
	members["a"].DbSizeQuota = -1 // it has none
	members["b"].DbSizeQuota = 8 << 30
	members["b"].Errors = []string{"memberID:1 alarm:NOSPACE "}
	want(set, store.Usage{InUse: 20, Size: 40, Quota: 5 << 30, Revision: 7, Full: true})
	members["a"].DbSizeQuota = 9 << 30
	want(set, store.Usage{InUse: 20, Size: 40, Quota: 8 << 30, Revision: 7, Full: true})
	members["b"].Errors = []string{"memberID:1 alarm:CORRUPT "}
	want(set, store.Usage{InUse: 20, Size: 40, Quota: 8 << 30, Revision: 7})
	clear(members)
	if u, err := set.Usage(t.Context()); err == nil {
		t.Errorf("no member answers, usage is %+v", u)
	}
}
