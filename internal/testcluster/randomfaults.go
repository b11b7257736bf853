package testcluster

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// maxLate bounds the time from a request until its copy is applied: after much else.
	maxLate = 3 * time.Second
	// lateTimeout bounds the delivery of a copy.
	lateTimeout = 30 * time.Second
)

// RandomFaults is a clientv3.KV that, while it is switched on, gives one writing transaction in five a fate of its own:
// its request is lost, its reply is lost, it is delivered late, or it is delivered now and once more later. It may be
// used concurrently.
type RandomFaults struct {
	clientv3.KV
	on   atomic.Bool
	late sync.WaitGroup // copies under way
	lost atomic.Int64
}

// NewRandomFaults returns a client that shares everything with c but its KV, which is a RandomFaults, switched off.
func NewRandomFaults(c *clientv3.Client) (*clientv3.Client, *RandomFaults) {
	f := &RandomFaults{KV: c.KV}
	client := clientv3.NewCtxClient(context.Background())
	client.KV, client.Lease, client.Watcher, client.Maintenance, client.Cluster = f, c.Lease, c.Watcher, c.Maintenance, c.Cluster
	return client, f
}

// Switch turns the faults on or off. Copies under way stay so.
func (f *RandomFaults) Switch(on bool) { f.on.Store(on) }

// Settle waits until every copy is delivered, and returns how many answers were lost so far.
func (f *RandomFaults) Settle() (lost int64) {
	f.late.Wait()
	return f.lost.Load()
}

// Do gives a writing transaction its fate.
func (f *RandomFaults) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if !f.on.Load() || !writes(op) {
		return f.KV.Do(ctx, op)
	}
	switch p := rand.Float64(); {
	case p < 0.05:
		return f.lose()
	case p < 0.10:
		_, _ = f.KV.Do(ctx, op)
		return f.lose()
	case p < 0.15:
		f.deliverLate(op)
		return f.lose()
	case p < 0.20:
		f.deliverLate(op)
	}
	return f.KV.Do(ctx, op)
}

func (f *RandomFaults) lose() (clientv3.OpResponse, error) {
	f.lost.Add(1)
	return clientv3.OpResponse{}, ErrLost
}

func (f *RandomFaults) deliverLate(op clientv3.Op) {
	f.late.Add(1)
	time.AfterFunc(rand.N(maxLate), func() {
		defer f.late.Done()
		ctx, cancel := context.WithTimeout(context.Background(), lateTimeout)
		defer cancel()
		_, _ = f.KV.Do(ctx, op) // nobody waits for its answer
	})
}
