package natsbus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"taskledger/engine"
	"taskledger/engine/archivetest"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
)

// With replicas the archive outlives the loss of a server, and takes more.
func TestArchive_IsKeptOnAsManyServersAsAskedFor(t *testing.T) {
	t.Parallel()
	servers := testcluster.StartNATSCluster(t)
	a := archiveOf(t, natsbus.Config{URLs: servers.URLs}, natsbus.ArchiveConfig{Replicas: 3, Settled: -1})
	conn, err := nats.Connect(strings.Join(servers.URLs, ","))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	eventually := func(what string, f func() error) {
		t.Helper()
		var err error
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if err = f(); err == nil {
				return
			}
		}
		t.Fatalf("%s: %v", what, err)
	}
	entries := archivetest.Entries(t, 0, 1, 4)
	var head engine.ArchiveHead
	eventually("archive once the servers have found each other", func() (err error) {
		head, err = a.Archive(t.Context(), 0, engine.ArchiveHead{}, entries[:2])
		return err
	})
	var leader string
	eventually("three replicas", func() error {
		s, err := js.Stream(t.Context(), archiveStream)
		if err != nil {
			return err
		}
		info := s.CachedInfo()
		if info.Config.Replicas != 3 || len(info.Cluster.Replicas) != 2 {
			return fmt.Errorf("stream of %d replicas, on %+v", info.Config.Replicas, info.Cluster)
		}
		leader = info.Cluster.Leader
		return nil
	})
	servers.Stop(leader)
	var last engine.ArchiveHead
	eventually("archive without the server that led the stream", func() (err error) {
		last, err = a.Archive(t.Context(), 0, head, entries[2:])
		return err
	})
	if err := a.Confirm(t.Context(), 0, last, entries[2:]); err != nil {
		t.Error(err)
	}
	got, err := archivetest.Collect(a.ReadArchive(t.Context(), 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, entries)
}
