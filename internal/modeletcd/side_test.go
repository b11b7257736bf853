package modeletcd_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"taskledger/internal/modeletcd"
	"taskledger/internal/testcluster"
)

// side is one of the two systems that are compared.
type side struct {
	client *clientv3.Client
	leases pb.LeaseClient // grants with an id
	alarm  func(ctx context.Context, full bool) error
	base   int64  // the revision that others are told relative to
	at     string // the endpoint of its one member
}

func newModel() *side {
	s, _ := newTickingModel()
	return s
}

// newTickingModel is newModel with the model, whose clock the caller drives.
func newTickingModel() (*side, *modeletcd.Model) {
	m := modeletcd.New(time.Now)
	return &side{
		client: m.Connect(modeletcd.Direct{}),
		leases: m.LeaseClient(),
		alarm:  func(_ context.Context, full bool) error { m.SetFull(full); return nil },
	}, m
}

func startEtcd(t *testing.T) *side {
	t.Helper()
	endpoint, client := testcluster.StartEtcd(t)
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	state, err := client.Status(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	maintenance := pb.NewMaintenanceClient(conn)
	return &side{
		client: client,
		leases: pb.NewLeaseClient(conn),
		at:     endpoint,
		alarm: func(ctx context.Context, full bool) error {
			r := &pb.AlarmRequest{Action: pb.AlarmRequest_DEACTIVATE, MemberID: state.Header.MemberId, Alarm: pb.AlarmType_NOSPACE}
			if full {
				r.Action = pb.AlarmRequest_ACTIVATE
			}
			_, err := maintenance.Alarm(ctx, r)
			return err
		},
	}
}

// must panics when a step that is not compared fails: rapid reports it.
func (s *side) must(_ any, err error) {
	if err != nil {
		panic(err)
	}
}

func (s *side) setFull(ctx context.Context, full bool) { s.must(nil, s.alarm(ctx, full)) }

// answer holds the answer of a side to a request.
type answer struct {
	text     string // comparable
	revision int64  // 0 after an error
	err      error
}

func (s *side) answer(err error, header *pb.ResponseHeader, format string, args ...any) answer {
	if err != nil {
		return answer{text: fmt.Sprintf("error %s: %v", code(err), err), err: err}
	}
	text := fmt.Sprintf("revision %d: ", s.relative(header.Revision)) + fmt.Sprintf(format, args...)
	return answer{text: text, revision: header.Revision}
}

// code returns the code of the status, also within the client's own errors.
func code(err error) codes.Code {
	if coded, ok := err.(interface{ Code() codes.Code }); ok {
		return coded.Code()
	}
	return status.Code(err)
}

// relative is the same for no revision, 0, on both sides.
func (s *side) relative(rev int64) int64 {
	if rev == 0 {
		return math.MinInt64
	}
	return rev - s.base
}

func (s *side) pair(kv *mvccpb.KeyValue) string {
	if kv == nil {
		return "none"
	}
	return fmt.Sprintf("%q=%q created %d modified %d version %d lease %d", kv.Key, kv.Value,
		s.relative(kv.CreateRevision), s.relative(kv.ModRevision), kv.Version, kv.Lease)
}

func (s *side) pairs(kvs []*mvccpb.KeyValue) string {
	var all []string
	for _, kv := range kvs {
		all = append(all, s.pair(kv))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func (s *side) do(ctx context.Context, op clientv3.Op) answer {
	resp, err := s.client.Do(ctx, op)
	switch {
	case err != nil:
		return s.answer(err, nil, "")
	case resp.Put() != nil:
		return s.answer(nil, resp.Put().Header, "%s", s.putText((*pb.PutResponse)(resp.Put())))
	case resp.Del() != nil:
		return s.answer(nil, resp.Del().Header, "%s", s.deleteText((*pb.DeleteRangeResponse)(resp.Del())))
	case resp.Get() != nil:
		return s.answer(nil, resp.Get().Header, "%s", s.rangeText((*pb.RangeResponse)(resp.Get())))
	}
	return s.answer(nil, resp.Txn().Header, "%s", s.txnText((*pb.TxnResponse)(resp.Txn())))
}

func (s *side) putText(r *pb.PutResponse) string { return "put, was " + s.pair(r.PrevKv) }

func (s *side) deleteText(r *pb.DeleteRangeResponse) string {
	return fmt.Sprintf("deleted %d, were %s", r.Deleted, s.pairs(r.PrevKvs))
}

func (s *side) rangeText(r *pb.RangeResponse) string {
	return fmt.Sprintf("%s count %d more %v", s.pairs(r.Kvs), r.Count, r.More)
}

func (s *side) txnText(r *pb.TxnResponse) string {
	text := fmt.Sprint("succeeded ", r.Succeeded)
	for _, op := range r.Responses {
		var inner string
		var header *pb.ResponseHeader
		switch {
		case op.GetResponsePut() != nil:
			inner, header = s.putText(op.GetResponsePut()), op.GetResponsePut().Header
		case op.GetResponseDeleteRange() != nil:
			inner, header = s.deleteText(op.GetResponseDeleteRange()), op.GetResponseDeleteRange().Header
		default:
			inner, header = s.rangeText(op.GetResponseRange()), op.GetResponseRange().Header
		}
		text += fmt.Sprintf("; at %d %s", s.relative(header.Revision), inner)
	}
	return text
}

func (s *side) grant(ctx context.Context, r *pb.LeaseGrantRequest) answer {
	resp, err := s.leases.LeaseGrant(ctx, r)
	return s.answer(err, resp.GetHeader(), "lease %d of %d s", resp.GetID(), resp.GetTTL())
}

func (s *side) revoke(ctx context.Context, id int64) answer {
	resp, err := s.client.Revoke(ctx, clientv3.LeaseID(id))
	if err != nil {
		return s.answer(err, nil, "")
	}
	return s.answer(nil, resp.Header, "revoked")
}

func (s *side) keepAlive(ctx context.Context, id int64) answer {
	resp, err := s.client.KeepAliveOnce(ctx, clientv3.LeaseID(id))
	if err != nil {
		return s.answer(err, nil, "")
	}
	return s.answer(nil, resp.ResponseHeader, "%d for %d s", resp.ID, resp.TTL)
}

// timeToLive leaves out what remains of a lease that is there.
func (s *side) timeToLive(ctx context.Context, id int64) answer {
	resp, err := s.client.TimeToLive(ctx, clientv3.LeaseID(id), clientv3.WithAttachedKeys())
	if err != nil {
		return s.answer(err, nil, "")
	}
	keys := make([]string, 0, len(resp.Keys))
	for _, key := range resp.Keys {
		keys = append(keys, string(key))
	}
	slices.Sort(keys)
	return s.answer(nil, resp.ResponseHeader, "%d gone %v granted %d s keys %q", resp.ID, resp.TTL < 0, resp.GrantedTTL, keys)
}

func (s *side) compact(ctx context.Context, rev int64) answer {
	resp, err := s.client.Compact(ctx, s.base+rev)
	if err != nil {
		return s.answer(err, nil, "")
	}
	return s.answer(nil, resp.Header, "compacted")
}
