package etcdstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/internal/testkit"
	"taskledger/store"
	"taskledger/store/storetest"
)

func TestReceiver_KeepsTheContract(t *testing.T) {
	t.Parallel()
	_, client := testcluster.StartEtcd(t)
	var clusters atomic.Int32
	storetest.RunReceiver(t, func(t *testing.T) storetest.ReceiverFixture {
		cfg := etcdstore.Config{
			Client:         client,
			Cluster:        fmt.Sprint("c", clusters.Add(1)),
			RequestTimeout: timeout,
		}
		return storetest.ReceiverFixture{
			Receive: func(ctx context.Context, c store.Cluster) (store.Receiver, error) {
				r, err := etcdstore.Receive(ctx, cfg, c, "a test")
				if err != nil {
					return nil, err
				}
				return r, nil
			},
			Open: func(ctx context.Context) (store.Store, error) {
				cfg := cfg
				cfg.Existing = true
				s, err := etcdstore.Open(ctx, cfg)
				if err != nil {
					return nil, err
				}
				return s, nil
			},
		}
	})
}

// A cluster that was copied is a store as any other, whose revisions count from a base.
func TestStore_ThatWasCopiedKeepsTheContract(t *testing.T) {
	t.Parallel()
	_, client := testcluster.StartEtcd(t)
	var clusters atomic.Int32
	storetest.Run(t, func(t *testing.T) storetest.Fixture {
		cfg := etcdstore.Config{Client: client, Cluster: fmt.Sprint("c", clusters.Add(1)), RequestTimeout: timeout}
		r, err := etcdstore.Receive(t.Context(), cfg, copied, "a test")
		if err == nil {
			err = r.Begin(t.Context())
		}
		if err == nil {
			err = r.Finish(t.Context(), 1_000_000_000_000, store.Reads{})
		}
		if err != nil {
			t.Fatal(err)
		}
		return storetest.Fixture{
			A:      openStore(t, cfg),
			B:      openStore(t, cfg),
			Strays: testcluster.Strays{T: t, Etcd: client, Cluster: cfg.Cluster},
		}
	})
}

func TestReceiver_EndsWhereEtcdIsFull(t *testing.T) {
	t.Parallel()
	_, client := testcluster.StartSmallEtcd(t, 4<<20)
	cfg := etcdstore.Config{Client: client, RequestTimeout: timeout}
	r, err := etcdstore.Receive(t.Context(), cfg, copied, "a test")
	if err == nil {
		err = r.Begin(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); err == nil && n < 100; n++ {
		head := store.Head{Number: n, Revision: int64(n)}
		err = r.AddEntries(t.Context(), 0, []store.Record{{Head: head, Data: make([]byte, 500<<10)}})
	}
	if !errors.Is(err, store.ErrFull) {
		t.Errorf("error is %v", err)
	}
}

var copied = store.Cluster{ID: "abcdefghijklmnop", Shards: 2, Key: []byte("0123456789abcdef0123456789abcdef")}

func TestReceiver_WritesNothingOnceAnotherHasBegun(t *testing.T) {
	f := newFixture(t)
	cfg := etcdstore.Config{Cluster: "other", Client: f.raw}
	first, err := etcdstore.Receive(f.ctx, cfg, copied, "a test")
	f.must(err)
	f.must(first.Begin(f.ctx))
	second, err := etcdstore.Receive(f.ctx, cfg, copied, "a test")
	f.must(err)
	f.must(second.Begin(f.ctx))
	for what, err := range map[string]error{
		"AddShard":   first.AddShard(f.ctx, 0, store.ReceivedShard{}, nil),
		"AddEntries": first.AddEntries(f.ctx, 0, []store.Record{{Head: store.Head{Number: 1, Revision: 5}, Data: []byte("x")}}),
		"Finish":     first.Finish(f.ctx, 100, store.Reads{}),
	} {
		if !errors.Is(err, store.ErrTaken) {
			t.Errorf("%s: %v", what, err)
		}
	}
	f.absent(etcdstore.KeysOf("other").Entry(0, 1))
	f.must(second.Finish(f.ctx, 100, store.Reads{}))
}

func TestReceiver_LooksAtNothingButItsOwnCluster(t *testing.T) {
	f := newFixture(t)
	_, err := f.raw.Put(f.ctx, etcdstore.KeysOf("torn").Entry(0, 1), "x")
	f.must(err)
	_, err = etcdstore.Receive(f.ctx, etcdstore.Config{Cluster: "torn", Client: f.raw}, copied, "a test")
	wantError(t, err, "there is the key torn/journal/0/0000000000000001, of no cluster")
	if !errors.Is(err, store.ErrTaken) {
		t.Errorf("error is %v", err)
	}
	_, err = etcdstore.Receive(f.ctx, etcdstore.Config{Cluster: cluster, Client: f.raw}, copied, "a test")
	wantError(t, err, "which is another one")
}

func TestOpen_NamesACopyThatIsNotFinished(t *testing.T) {
	f := newFixture(t)
	cfg := etcdstore.Config{Cluster: "half", Client: f.raw}
	r, err := etcdstore.Receive(f.ctx, cfg, copied, "/var/lib/files")
	f.must(err)
	f.must(r.Begin(f.ctx))
	for _, cfg := range []etcdstore.Config{cfg, {Cluster: "half", Client: f.raw, Existing: true}, {Cluster: "half", Client: f.raw, ID: copied.ID}} {
		_, err = etcdstore.Open(f.ctx, cfg)
		wantError(t, err, "copy of cluster abcdefghijklmnop from /var/lib/files not finished: run copy again")
		if !errors.Is(err, store.ErrUnfinished) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestFormat_CopiesAreWhatTheyWere(t *testing.T) {
	key := bytes.Repeat([]byte{0xab}, 32)
	wantValue(t, "meta-copied", etcdstore.EncodeCopiedMeta(16, "mnopqrstuvwxyz23", key, 1_234_567_890))
	if shards, id, got, err := etcdstore.DecodeMeta(goldenValue(t, "meta-copied")); shards != 16 || id != "mnopqrstuvwxyz23" || !bytes.Equal(got, key) || err != nil {
		t.Errorf("meta is %d, %q, %x, %v", shards, id, got, err)
	}
	wantValue(t, "copying", etcdstore.EncodeCopying("/var/lib/files", 16, "mnopqrstuvwxyz23", key))
	if of, id, err := etcdstore.DecodeCopying(goldenValue(t, "copying")); of != "/var/lib/files" || id != "mnopqrstuvwxyz23" || err != nil {
		t.Errorf("mark is of %q, %q, %v", of, id, err)
	}
	testkit.CheckBombs(t, goldenValue(t, "copying"), func(b []byte) error {
		_, _, err := etcdstore.DecodeCopying(b)
		return err
	})
	wantValue(t, "carried", etcdstore.Carry(1_234_567_890, []byte("entry")))
	if revision, entry := etcdstore.Carried(goldenValue(t, "carried")); revision != 1_234_567_890 || string(entry) != "entry" {
		t.Errorf("carried is %q of revision %d", entry, revision)
	}
}

func TestFormat_WhatIsNoCopiedEntryIsLeftAsItIs(t *testing.T) {
	for _, value := range []string{"", "\xc1", "\xc1\x00\x00\x00\x00\x00\x00\x00", "\xc1\x00\x00\x00\x00\x00\x00\x00\x00x", "\xc1\xff\xff\xff\xff\xff\xff\xff\xffx", "entry of nine"} {
		if revision, entry := etcdstore.Carried([]byte(value)); revision != 0 || string(entry) != value {
			t.Errorf("%q is read as %q of revision %d", value, entry, revision)
		}
	}
}
