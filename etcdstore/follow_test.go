package etcdstore_test

import (
	"bytes"
	"context"
	"iter"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/internal/testcluster"
	"taskledger/store"
)

// meteredWatcher counts what a client is handed by its watches, and the watches that go on.
type meteredWatcher struct {
	clientv3.Watcher
	bytes, open atomic.Int64
}

func (w *meteredWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	from, to := w.Watcher.Watch(ctx, key, opts...), make(chan clientv3.WatchResponse)
	w.open.Add(1)
	go func() {
		defer close(to)
		defer w.open.Add(-1)
		for resp := range from {
			for _, ev := range resp.Events {
				w.bytes.Add(int64(len(ev.Kv.Value)))
			}
			select {
			case to <- resp:
			case <-ctx.Done():
			}
		}
	}()
	return to
}

// While the consumer is busy with one entry etcd's client would keep all that follow. The watch ends instead.
func TestFollow_KeepsNoMoreThanAFewEntriesForASlowConsumer(t *testing.T) {
	const entries, size, most = 100, 100 << 10, 4 << 20
	f := newFixture(t)
	o := f.own()
	meter := &meteredWatcher{Watcher: f.client.Watcher}
	f.client.Watcher = meter
	next, stop := iter.Pull2(f.faulty.Follow(f.ctx, 0, 1))
	defer stop()
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, size) }
	var head store.Head
	add := func(i int) {
		revision, err := f.sound.Append(f.ctx, o, head, value(i))
		f.must(err)
		head = store.Head{Number: head.Number + 1, Revision: revision}
	}
	read := func(i int) {
		if r, err, ok := next(); err != nil || !ok || !bytes.Equal(r.Data, value(i)) {
			t.Errorf("entry %d is %+v, %v, %v", i, r.Head, err, ok)
		}
	}
	came := make(chan struct{})
	go func() {
		defer close(came)
		read(0)
	}()
	testcluster.Await(t, "a watch", func() bool { return meter.open.Load() == 1 })
	for i := range entries {
		add(i)
	}
	<-came
	testcluster.Await(t, "the end of the watch", func() bool { return meter.open.Load() == 0 })
	if held := meter.bytes.Load(); held > most {
		t.Errorf("the watch has brought %d bytes, want at most %d", held, most)
	}
	for i := 1; i < entries; i++ {
		read(i)
	}
}
