package modeletcd

import (
	"context"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ConnectInBubble is Connect for a bubble of package synctest, in which time would stand still for good as soon as
// the real client watches: it waits for a channel of no bubble. Each watch of this one is a stream and a goroutine
// of its own, which ends with its context, or with the stream: it does not resume.
func (m *Model) ConnectInBubble(t Transport) *clientv3.Client {
	c := m.Connect(t)
	c.Watcher = bubbleWatcher{&conn{m, t}}
	return c
}

type bubbleWatcher struct{ *conn }

// Watch implements clientv3.Watcher.
func (w bubbleWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpWatch(key, opts...)
	told := make(chan clientv3.WatchResponse)
	go func() {
		defer close(told)
		stream, err := watchClient(w).Watch(ctx)
		if err != nil {
			return
		}
		_ = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{ // never fails
			CreateRequest: &pb.WatchCreateRequest{Key: op.KeyBytes(), RangeEnd: op.RangeBytes(), StartRevision: op.Rev()}}})
		for {
			resp, err := stream.Recv()
			if err != nil {
				return
			}
			if resp.Created && !resp.Canceled {
				continue
			}
			out := clientv3.WatchResponse{Header: resp.Header, CompactRevision: resp.CompactRevision, Canceled: resp.Canceled}
			for _, ev := range resp.Events {
				out.Events = append(out.Events, (*clientv3.Event)(ev))
			}
			select {
			case told <- out:
			case <-ctx.Done():
			}
		}
	}()
	return told
}

// RequestProgress implements clientv3.Watcher.
func (bubbleWatcher) RequestProgress(context.Context) error { return unimplemented("RequestProgress") }

// Close implements clientv3.Watcher.
func (bubbleWatcher) Close() error { return nil }
