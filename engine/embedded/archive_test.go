package embedded_test

import (
	"bytes"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/cluster"
	"taskledger/engine/embedded"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// connect opens the cluster on the servers and its archive, until the test ends.
func connect(t *testing.T, s *embedded.Servers) *cluster.Cluster {
	t.Helper()
	c, err := s.Connect(t.Context(), "", 4, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestServers_ArchiveSurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := start(t, embedded.ServersConfig{Dir: dir})
	archive := connect(t, first).Archive
	entries := archivetest.Entries(t, 0, 1, 3)
	head, err := archive.Archive(t.Context(), 0, store.ArchiveHead{}, entries)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	archive = connect(t, start(t, embedded.ServersConfig{Dir: dir})).Archive
	if err := archive.Confirm(t.Context(), 0, head, entries); err != nil {
		t.Error(err)
	}
	got, err := archivetest.Collect(archive.ReadArchive(t.Context(), 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, entries)
}

// The archive of servers in this process counts on it: it lets no time pass between acknowledgement and trim.
func TestServers_WhatNATSAcknowledgesIsOnDisk(t *testing.T) {
	t.Parallel()
	if c := start(t, embedded.ServersConfig{Dir: t.TempDir()}).JetStreamConfig(); c == nil || !c.SyncAlways {
		t.Errorf("JetStream is %+v, want it to sync always", c)
	}
	if after := embedded.ArchiveConfig().DurableAfter; after >= 0 {
		t.Errorf("an acknowledged segment counts as durable after %s", after)
	}
}

func TestConnect_StoreGivesSpaceBack(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.ServersConfig{})
	store := connect(t, s).Store
	client := s.EtcdClient()
	for range 8 {
		put(t, client, "filling", strings.Repeat("x", 1<<20))
	}
	r, err := client.Get(t.Context(), "filling")
	if err == nil {
		_, err = client.Compact(t.Context(), r.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Fatal(err)
	}
	before, err := store.Usage(t.Context())
	if err == nil {
		err = store.Defragment(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	after, err := store.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if after.Size > before.Size/2 {
		t.Errorf("%d bytes after defragmentation, %d before", after.Size, before.Size)
	}
	if got := get(t, client, "filling"); !bytes.Equal([]byte(got), bytes.Repeat([]byte("x"), 1<<20)) {
		t.Error("the data has changed")
	}
}
