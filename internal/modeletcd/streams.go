package modeletcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// streamContext implements the methods that the streams of a client have in common.
type streamContext struct{ ctx context.Context }

// Context implements grpc.ClientStream.
func (s streamContext) Context() context.Context { return s.ctx }

// Header implements grpc.ClientStream.
func (streamContext) Header() (metadata.MD, error) { return nil, nil }

// Trailer implements grpc.ClientStream.
func (streamContext) Trailer() metadata.MD { return nil }

// CloseSend implements grpc.ClientStream. The streams end with their context.
func (streamContext) CloseSend() error { return nil }

// SendMsg implements grpc.ClientStream. The client sends typed messages.
func (streamContext) SendMsg(any) error { return unimplemented("SendMsg") }

// RecvMsg implements grpc.ClientStream. The client receives typed messages.
func (streamContext) RecvMsg(any) error { return unimplemented("RecvMsg") }

// watchStream is the client's side of a watch stream.
type watchStream struct {
	streamContext
	*conn
	stream *stream
}

var _ grpc.BidiStreamingClient[pb.WatchRequest, pb.WatchResponse] = (*watchStream)(nil)

// Send carries out a request of the client; Recv returns the result.
func (s *watchStream) Send(r *pb.WatchRequest) error {
	s.model.request(s.stream, r)
	return nil
}

// Recv waits for the next response.
func (s *watchStream) Recv() (*pb.WatchResponse, error) {
	resp, err := s.model.receive(s.ctx, s.stream)
	if err != nil {
		return nil, withStatus(s.ctx, err)
	}
	if err := s.transport.Deliver(s.ctx); err != nil {
		err = withStatus(s.ctx, err)
		s.model.endStream(s.stream, err)
		return nil, err
	}
	return resp, nil
}

// keepAliveStream makes one call of each request, when its reply is received.
type keepAliveStream struct {
	streamContext
	*conn
	sent chan *pb.LeaseKeepAliveRequest
}

var _ grpc.BidiStreamingClient[pb.LeaseKeepAliveRequest, pb.LeaseKeepAliveResponse] = (*keepAliveStream)(nil)

// Send asks for a renewal.
func (s *keepAliveStream) Send(r *pb.LeaseKeepAliveRequest) error {
	select {
	case s.sent <- r:
		return nil
	case <-s.ctx.Done():
		return withStatus(s.ctx, s.ctx.Err())
	}
}

// Recv makes the next renewal that was asked for.
func (s *keepAliveStream) Recv() (*pb.LeaseKeepAliveResponse, error) {
	select {
	case r := <-s.sent:
		return call(s.ctx, s.conn, "LeaseKeepAlive", true, r, s.model.keepAlive)
	case <-s.ctx.Done():
		return nil, withStatus(s.ctx, s.ctx.Err())
	}
}
