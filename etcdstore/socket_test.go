package etcdstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
)

// The paths of sockets themselves are tested with the etcd that listens on them, in package embedded.
func TestOpen_AsksItsDialerUntilThatFindsTheServer(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	var dialled atomic.Int32
	s := openStore(t, etcdstore.Config{Dial: func(ctx context.Context) (net.Conn, error) {
		if dialled.Add(1) < 3 {
			return nil, errors.New("it has not come back yet")
		}
		return new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(endpoint, "http://"))
	}})
	if n := s.Cluster().Shards; n != 16 || dialled.Load() < 3 {
		t.Errorf("%d shards after %d dials", n, dialled.Load())
	}
	if used, err := s.Usage(t.Context()); err != nil || used.Size == 0 {
		t.Errorf("usage %+v, %v", used, err) // asked of each member over a connection of its own
	}
}
