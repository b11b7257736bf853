package etcdstore_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// refusing is a KV whose reads etcd refuses, as it does when a role is changed, so many times.
type refusing struct {
	clientv3.KV
	left atomic.Int32
}

func (r *refusing) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if r.left.Add(-1) >= 0 {
		return nil, rpctypes.ErrPermissionDenied
	}
	return r.KV.Get(ctx, key, opts...)
}

// The mailbox and the membership go on when what a role may read was changed for a moment: nobody would ask for them again.
func TestWatches_GoOnAfterARefusedRead(t *testing.T) {
	for what, one := range map[string]func(f *fixture) (watched func() error){
		"batches": func(f *fixture) func() error {
			f.post("batch")
			return func() error { return firstValue(f.faulty.Batches(f.ctx, 0)) }
		},
		"answers": func(f *fixture) func() error {
			f.post("batch")
			next, stop := iter.Pull2(f.sound.Batches(f.ctx, 0))
			defer stop()
			l, err, _ := next()
			f.must(err)
			f.must(f.sound.Answer(f.ctx, l, []byte("answer")))
			return func() error { return firstValue(f.faulty.Answers(f.ctx, l.Sender)) }
		},
		"members": func(f *fixture) func() error {
			return func() error { return firstValue(f.faulty.WatchMembers(f.ctx)) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFixture(t)
			watch := one(f)
			r := &refusing{KV: f.client.KV}
			r.left.Store(2)
			f.client.KV = r
			if err := watch(); err != nil {
				t.Error(err)
			}
			if r.left.Load() >= 0 {
				t.Error("no read was refused")
			}
		})
	}
}

// firstValue passes errors over until there is a value; it returns the last error if none comes.
func firstValue[V any](seq iter.Seq2[V, error]) (err error) {
	for _, err = range seq {
		if err == nil {
			return nil
		}
	}
	return err
}
