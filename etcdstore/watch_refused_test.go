package etcdstore_test

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
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

// The mailbox and the membership go on when what a role may read was changed for a moment: nobody would ask for them
// again.
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

// refusingWatches is a Watcher whose watches etcd refuses when they are created, so many times.
type refusingWatches struct {
	clientv3.Watcher
	left atomic.Int32
}

func (r *refusingWatches) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if r.left.Add(-1) >= 0 {
		opts = append(opts, clientv3.WithRange("a")) // before every key: an empty range
	}
	return r.Watcher.Watch(ctx, key, opts...)
}

// The etcd client may never serve a stream again after two of its watches end at once, if etcd refused to create one
// of them. A later watch over that stream would wait for ever.
func TestFollow_GoesOnAfterManyRefusedWatches(t *testing.T) {
	f := newFixture(t)
	const followers, each = 32, 8
	r := &refusingWatches{Watcher: f.client.Watcher}
	r.left.Store(followers * each)
	f.client.Watcher = r
	o := f.own()
	head := f.append(o, store.Head{}, "one")
	var all sync.WaitGroup
	for range followers {
		all.Go(func() {
			next, stop := iter.Pull2(f.faulty.Follow(f.ctx, 0, 1))
			defer stop()
			for _, want := range []string{"one", "two"} {
				if r, err, ok := next(); err != nil || !ok || string(r.Data) != want {
					t.Errorf("got entry %+v %q, %v, %v, want %q", r.Head, r.Data, err, ok, want)
					return
				}
			}
		})
	}
	for r.left.Load() > 0 && f.ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	f.append(o, head, "two")
	all.Wait()
}
