package modeletcd

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Transport is one client's way to the cluster: every request passes it, and every response of a watch. Its methods
// may be called concurrently.
//
// Errors without a gRPC status reach the client as codes.Unavailable, unless ctx has ended. What that makes of a
// request is the real client's affair: it opens watch streams again, and sends keep-alives again at once and
// without end, so a Transport that cuts a client off waits, or lets time pass.
type Transport interface {
	// Call makes a request. It may delay it, never make it, make it and lose the reply, or make a copy of it later. A
	// Transport that adds nothing returns c.Make().
	Call(ctx context.Context, c Call) (proto.Message, error)
	// Deliver is called before each response of a watch stream reaches the client, in their order. It may wait,
	// until ctx ends. An error breaks the stream, with all its watches; the response is lost.
	Deliver(ctx context.Context) error
}

// Call is a request on its way.
type Call struct {
	Method string // as etcd's API names it: "Range", "Txn", "LeaseKeepAlive" ...; "Watch" opens a stream
	Writes bool   // it may change keys, leases or alarms
	// Make applies the request and returns the reply, or etcd's refusal. It may be called any number of times, at any
	// time, and does not wait.
	Make func() (proto.Message, error)
}

// Direct is the Transport that makes every call at once and once.
type Direct struct{}

// Call is described in Transport.
func (Direct) Call(_ context.Context, c Call) (proto.Message, error) { return c.Make() }

// Deliver is described in Transport.
func (Direct) Deliver(context.Context) error { return nil }

// Connect returns a client of the cluster. The caller closes it.
func (m *Model) Connect(t Transport) *clientv3.Client {
	c := clientv3.NewCtxClient(context.Background())
	conn := &conn{m, t}
	c.KV = clientv3.NewKVFromKVClient(kvClient{pb.NewKVClient(refusal{}), conn}, c)
	c.Lease = clientv3.NewLeaseFromLeaseClient(leaseClient{pb.NewLeaseClient(refusal{}), conn}, c, time.Second)
	c.Watcher = clientv3.NewWatchFromWatchClient(watchClient{conn}, c)
	c.Maintenance = clientv3.NewMaintenanceFromMaintenanceClient(maintenanceClient{pb.NewMaintenanceClient(refusal{}), conn}, c)
	c.Cluster = clientv3.NewClusterFromClusterClient(clusterClient{pb.NewClusterClient(refusal{}), conn}, c)
	c.Auth = clientv3.NewAuthFromAuthClient(pb.NewAuthClient(refusal{}), c)
	return c
}

// conn is a client's connection.
type conn struct {
	model     *Model
	transport Transport
}

// call sends a request through the transport.
func call[Request any, Reply proto.Message](ctx context.Context, c *conn, method string, writes bool, request Request, apply func(Request) (Reply, error)) (reply Reply, err error) {
	if ctx.Err() != nil {
		return reply, withStatus(ctx, ctx.Err())
	}
	m, err := c.transport.Call(ctx, Call{Method: method, Writes: writes, Make: func() (proto.Message, error) {
		reply, err := apply(request)
		if err != nil {
			return nil, err
		}
		return reply, nil
	}})
	if err != nil {
		return reply, withStatus(ctx, err)
	}
	reply, ok := m.(Reply)
	if !ok {
		return reply, status.Error(codes.Internal, fmt.Sprintf("transport answered %s with %T", method, m))
	}
	return reply, nil
}

// withStatus gives a status to an error of a transport, as gRPC does.
func withStatus(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

// refusal is the connection of the requests that are not modelled.
type refusal struct{}

// Invoke implements grpc.ClientConnInterface.
func (refusal) Invoke(_ context.Context, method string, _, _ any, _ ...grpc.CallOption) error {
	return unimplemented(method)
}

// NewStream implements grpc.ClientConnInterface.
func (refusal) NewStream(_ context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, unimplemented(method)
}

type kvClient struct {
	pb.KVClient // of the requests that are not modelled, here and below
	*conn
}

func (c kvClient) Range(ctx context.Context, r *pb.RangeRequest, _ ...grpc.CallOption) (*pb.RangeResponse, error) {
	return call(ctx, c.conn, "Range", false, r, c.model.rangeKeys)
}

func (c kvClient) Put(ctx context.Context, r *pb.PutRequest, _ ...grpc.CallOption) (*pb.PutResponse, error) {
	return call(ctx, c.conn, "Put", true, r, c.model.put)
}

func (c kvClient) DeleteRange(ctx context.Context, r *pb.DeleteRangeRequest, _ ...grpc.CallOption) (*pb.DeleteRangeResponse, error) {
	return call(ctx, c.conn, "DeleteRange", true, r, c.model.deleteRange)
}

func (c kvClient) Txn(ctx context.Context, r *pb.TxnRequest, _ ...grpc.CallOption) (*pb.TxnResponse, error) {
	return call(ctx, c.conn, "Txn", !readOnly(r), r, c.model.txn)
}

func (c kvClient) Compact(ctx context.Context, r *pb.CompactionRequest, _ ...grpc.CallOption) (*pb.CompactionResponse, error) {
	return call(ctx, c.conn, "Compact", true, r, c.model.compact)
}

type leaseClient struct {
	pb.LeaseClient
	*conn
}

func (c leaseClient) LeaseGrant(ctx context.Context, r *pb.LeaseGrantRequest, _ ...grpc.CallOption) (*pb.LeaseGrantResponse, error) {
	return call(ctx, c.conn, "LeaseGrant", true, r, c.model.leaseGrant)
}

func (c leaseClient) LeaseRevoke(ctx context.Context, r *pb.LeaseRevokeRequest, _ ...grpc.CallOption) (*pb.LeaseRevokeResponse, error) {
	return call(ctx, c.conn, "LeaseRevoke", true, r, c.model.leaseRevoke)
}

func (c leaseClient) LeaseTimeToLive(ctx context.Context, r *pb.LeaseTimeToLiveRequest, _ ...grpc.CallOption) (*pb.LeaseTimeToLiveResponse, error) {
	return call(ctx, c.conn, "LeaseTimeToLive", false, r, c.model.timeToLive)
}

func (c leaseClient) LeaseKeepAlive(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse], error) {
	return &keepAliveStream{streamContext{ctx}, c.conn, make(chan *pb.LeaseKeepAliveRequest, 1)}, nil
}

type maintenanceClient struct {
	pb.MaintenanceClient
	*conn
}

func (c maintenanceClient) Alarm(ctx context.Context, r *pb.AlarmRequest, _ ...grpc.CallOption) (*pb.AlarmResponse, error) {
	return call(ctx, c.conn, "Alarm", r.Action != pb.AlarmRequest_GET, r, c.model.alarm)
}

func (c maintenanceClient) Status(ctx context.Context, r *pb.StatusRequest, _ ...grpc.CallOption) (*pb.StatusResponse, error) {
	return call(ctx, c.conn, "Status", false, r, c.model.status)
}

func (c maintenanceClient) Defragment(ctx context.Context, r *pb.DefragmentRequest, _ ...grpc.CallOption) (*pb.DefragmentResponse, error) {
	return call(ctx, c.conn, "Defragment", false, r, c.model.defragment)
}

type clusterClient struct {
	pb.ClusterClient
	*conn
}

func (c clusterClient) MemberList(ctx context.Context, r *pb.MemberListRequest, _ ...grpc.CallOption) (*pb.MemberListResponse, error) {
	return call(ctx, c.conn, "MemberList", false, r, c.model.memberList)
}

type watchClient struct{ *conn }

func (c watchClient) Watch(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[pb.WatchRequest, pb.WatchResponse], error) {
	_, err := call(ctx, c.conn, "Watch", false, nil, func(*pb.WatchRequest) (*pb.WatchResponse, error) { return &pb.WatchResponse{}, nil })
	if err != nil {
		return nil, err
	}
	return &watchStream{streamContext{ctx}, c.conn, c.model.openStream()}, nil
}
