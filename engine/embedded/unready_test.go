package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"taskledger/engine/embedded"
	"taskledger/internal/testcluster"
)

// withoutQuorum leaves data of etcd in dir, of a member that waits for ever for another one.
func withoutQuorum(t *testing.T, dir string) {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Name = "embedded"
	cfg.Dir = dir
	cfg.LogLevel = "panic"
	cfg.ListenPeerUrls = nil
	cfg.ListenClientUrls = nil
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name) + ",other=http://127.0.0.1:0"
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	testcluster.Await(t, "two members", func() bool { return e.Server.AppliedIndex() == 2 })
	e.Server.HardStop()
	e.Close()
}

// A stop is no fault: nothing is told as an error on the way.
func TestStartServers_EndsWithItsContextWhileEtcdIsNotReady(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	withoutQuorum(t, filepath.Join(dir, "etcd"))
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough) // which a member that would become ready in a moment may pass over
	ended := make(chan error, 1)
	var told bytes.Buffer
	go func() {
		cfg := embedded.ServersConfig{Dir: dir, NoNATS: true, Log: slog.New(slog.NewTextHandler(&told, nil))}
		_, err := embedded.StartServers(ctx, cfg)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, enough) {
			t.Errorf("%v, want the cause of its context's end", err)
		}
		if told.Len() > 0 {
			t.Errorf("told %s", told.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("servers whose etcd does not become ready do not stop")
	}
}
