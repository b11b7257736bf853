package testcluster

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrLost reports a lost request or reply to its sender: it says nothing about the outcome.
var ErrLost = status.Error(codes.Unavailable, "reply lost")

// Fate decides what happens to one writing transaction. The zero value is the ordinary one: applied and answered.
type Fate struct {
	Drop bool   // it is not applied now
	Err  error  // the sender gets this instead of the answer; nil with Drop means ErrLost
	Copy bool   // a copy stays under way, until Release
	Then func() // called, unless nil, before the sender gets its answer
}

// Faults is a clientv3.KV that gives transactions the fates it was told. Only writing transactions sent by Do are
// affected, which is how etcdstore writes all but leases. It may be used concurrently.
type Faults struct {
	clientv3.KV

	mu    sync.Mutex
	fates []Fate
	sent  int
	held  []clientv3.Op
}

// InstallFaults puts Faults in front of the client's KV.
func InstallFaults(c *clientv3.Client) *Faults {
	f := &Faults{KV: c.KV}
	c.KV = f
	return f
}

// Next sets the fates of the next writing transactions, in order, and counts from 0 again. Those that follow are
// ordinary.
func (f *Faults) Next(fates ...Fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fates, f.sent = fates, 0
}

// Sent returns how many writing transactions were sent since Next.
func (f *Faults) Sent() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// Release delivers the copies that are under way, in the order they were sent, and returns how many had an effect.
func (f *Faults) Release(ctx context.Context) (effective int) {
	f.mu.Lock()
	held := f.held
	f.held = nil
	f.mu.Unlock()
	for _, op := range held {
		if resp, err := f.KV.Do(ctx, op); err == nil && resp.Txn().Succeeded {
			effective++
		}
	}
	return effective
}

// Do gives a writing transaction its fate.
func (f *Faults) Do(ctx context.Context, op clientv3.Op) (clientv3.OpResponse, error) {
	if !writes(op) {
		return f.KV.Do(ctx, op)
	}
	fate := f.draw(op)
	if fate.Then != nil {
		defer fate.Then()
	}
	if fate.Drop {
		if fate.Err == nil {
			fate.Err = ErrLost
		}
		return clientv3.OpResponse{}, fate.Err
	}
	resp, err := f.KV.Do(ctx, op)
	if fate.Err != nil {
		return clientv3.OpResponse{}, fate.Err
	}
	return resp, err
}

func (f *Faults) draw(op clientv3.Op) (fate Fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	if len(f.fates) > 0 {
		fate, f.fates = f.fates[0], f.fates[1:]
	}
	if fate.Copy {
		f.held = append(f.held, op)
	}
	return fate
}

func writes(op clientv3.Op) bool {
	_, then, otherwise := op.Txn()
	for _, o := range append(then[:len(then):len(then)], otherwise...) {
		if o.IsPut() || o.IsDelete() {
			return true
		}
	}
	return false
}
