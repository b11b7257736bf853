package etcdstore_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/etcdstore"
	"taskledger/internal/testcluster"
	"taskledger/store"
)

// hanging listens and answers nothing, as a member that was stopped does.
func hanging(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// A member that hangs would cost a request time-out.
func TestOpen_DoesNotWaitForAMemberThatHangs(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	began := time.Now()
	openStore(t, etcdstore.Config{Endpoints: []string{hanging(t), strings.TrimPrefix(endpoint, "http://")}, RequestTimeout: time.Minute})
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("opened after %s", took)
	}
}

func TestOpen_NamesWhatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	address := hanging(t)
	dial := func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) }
	for name, c := range map[string]struct {
		cfg  etcdstore.Config
		want string
	}{
		"a socket":             {etcdstore.Config{Endpoints: []string{"unix:no/such/socket"}}, "ask unix:no/such/socket for its status"},
		"a dialer with a name": {etcdstore.Config{Dial: dial, DialName: "the one next door"}, "ask the one next door for its status"},
		"a dialer":             {etcdstore.Config{Dial: dial}, "ask the server of the dialer for its status"},
	} {
		c.cfg.RequestTimeout = 100 * time.Millisecond
		if _, err := etcdstore.Open(t.Context(), c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// silent is an etcd that answers no read.
type silent struct{ clientv3.KV }

func (silent) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestRead_WhatEtcdDoesNotAnswerIsUnavailable(t *testing.T) {
	t.Parallel()
	endpoint, _ := testcluster.StartEtcd(t)
	client, err := etcdstore.NewClient(t.Context(), etcdstore.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	s := openStore(t, etcdstore.Config{Client: client, RequestTimeout: 3 * time.Second}) // which is enough to open it
	client.KV = silent{client.KV}
	var reading sync.WaitGroup
	for what, read := range map[string]func() error{
		"Read":     func() error { return errorOf(s.Read(t.Context(), 0, 1)) },
		"Backward": func() error { return errorOf(s.Backward(t.Context(), 0, 1)) },
		"Entry":    func() error { _, err := s.Entry(t.Context(), 0, 1); return err },
	} {
		reading.Go(func() {
			if err := read(); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v, want ErrUnavailable and what was waited for", what, err)
			}
		})
	}
	reading.Wait()
	ended, end := context.WithCancel(t.Context())
	end()
	if err := errorOf(s.Read(ended, 0, 1)); !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Read of a context that has ended: %v, want its error alone", err)
	}
}

// errorOf is the error that ends what is read.
func errorOf(records iter.Seq2[store.Record, error]) (last error) {
	for _, err := range records {
		last = err
	}
	return last
}
