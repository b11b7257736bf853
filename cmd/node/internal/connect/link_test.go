package connect_test

import (
	"errors"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	"taskledger/cmd/node/internal/connect"
	"taskledger/engine/embedded"
	"taskledger/internal/testcluster"
	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startServers(t *testing.T, cfg embedded.ServersConfig) *embedded.Servers {
	t.Helper()
	s, err := embedded.StartServers(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func linked(t *testing.T, link *connect.Link, err error) *connect.Link {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { link.Close() })
	return link
}

func TestLink_ProcessesOnOneDirectoryShareTheArchive(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	servers := startServers(t, embedded.ServersConfig{Dir: t.TempDir()})
	if err := servers.Advertise(nil); err != nil {
		t.Fatal(err)
	}
	link, err := connect.On(t.Context(), servers, "", 4, log)
	here := linked(t, link, err)
	link, err = connect.In(t.Context(), servers.Dir(), connect.Addresses{Log: log})
	there := linked(t, link, err)
	if here.Archive.DurableAfter() != 0 || there.Archive.DurableAfter() != 0 {
		t.Errorf("durable after %s and %s, want at once", here.Archive.DurableAfter(), there.Archive.DurableAfter())
	}
	entries := archivetest.Entries(t, 0, 1, 2)
	if _, err := here.Archive.Archive(t.Context(), 0, store.ArchiveHead{}, entries); err != nil {
		t.Fatal(err)
	}
	got, err := archivetest.Collect(there.Archive.ReadArchive(t.Context(), 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	archivetest.Compare(t, got, entries)
}

func TestLink_WithoutJetStreamNothingIsArchived(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	servers := startServers(t, embedded.ServersConfig{NoNATS: true})
	link, err := connect.On(t.Context(), servers, "", 4, log)
	if linked(t, link, err).Archive != nil {
		t.Error("an archive without NATS")
	}
	link, err = connect.At(t.Context(), connect.Addresses{Etcd: []string{servers.EtcdEndpoint()}, Log: log,
		NATS: []string{testcluster.StartNATS(t).URL}})
	archive := linked(t, link, err).Archive
	if got, err := archivetest.Collect(archive.ReadArchive(t.Context(), 0, 1)); len(got) > 0 || !errors.Is(err, store.ErrNoArchive) {
		t.Errorf("read %d entries, %v", len(got), err)
	}
	if _, err := archive.Head(t.Context(), 0); !errors.Is(err, natsbus.ErrNoJetStream) {
		t.Errorf("head: %v", err)
	}
}
