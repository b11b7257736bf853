package embedded

import (
	"context"
	"strconv"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"
)

// apart gives each watch of a client within the process a stream of its own. On a shared one the client and the
// server wait for each other for ever as soon as enough watches begin or end at once: each has something to send,
// neither reads, and no network holds what is on its way.
type apart struct {
	clientv3.Watcher
	watches atomic.Uint64
}

func (a *apart) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	number := strconv.FormatUint(a.watches.Add(1), 10) // a client shares streams by the metadata
	ctx = metadata.AppendToOutgoingContext(ctx, "watch", number)
	return a.Watcher.Watch(ctx, key, opts...)
}
