package natsbus_test

import (
	"strings"
	"testing"

	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// With replicas the archive outlives the loss of a server, and takes more.
func TestArchive_IsKeptOnAsManyServersAsAskedFor(t *testing.T) {
	t.Parallel()
	servers := testcluster.StartNATSCluster(t)
	a := archiveOf(t, natsbus.Config{URLs: servers.URLs}, natsbus.ArchiveConfig{Replicas: 3, DurableAfter: -1})
	js := byHand(t, strings.Join(servers.URLs, ","))
	entries := archivetest.Entries(t, 0, 1, 4)
	var head store.ArchiveHead
	archived := func(after store.ArchiveHead, entries []store.Record) func() bool {
		return func() bool {
			next, err := a.Archive(t.Context(), 0, after, entries)
			if err != nil {
				t.Log(err)
				return false
			}
			head = next
			return true
		}
	}
	testcluster.Await(t, "an archive once the servers have found each other", archived(head, entries[:2]))
	var leader string
	testcluster.Await(t, "three replicas", func() bool {
		s, err := js.Stream(t.Context(), archiveStream)
		if err != nil {
			t.Log(err)
			return false
		}
		info := s.CachedInfo()
		leader = info.Cluster.Leader
		return info.Config.Replicas == 3 && len(info.Cluster.Replicas) == 2
	})
	servers.Stop(leader)
	testcluster.Await(t, "more in it without the server that led the stream", archived(head, entries[2:]))
	if err := a.Confirm(t.Context(), 0, head, entries[2:]); err != nil {
		t.Error(err)
	}
	got, err := archivetest.Collect(a.ReadArchive(t.Context(), 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, entries)
}
