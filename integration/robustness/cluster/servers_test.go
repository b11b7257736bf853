package cluster

import (
	"context"
	"errors"
	"testing"

	"taskledger/natsbus"
	"taskledger/store"
	"taskledger/store/archivetest"
)

// What NATS in its role has acknowledged is there when it was killed and started again.
func TestNATS_KeepsTheArchive(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), moment)
	defer cancel()
	c := &Servers{Dir: t.TempDir(), NATS: &NATSServer{Role: Role{Kind: roleNATS, Name: "nats", Dir: t.TempDir()}}}
	entries := archivetest.Entries(t, 0, 1, 3)
	for _, begin := range []bool{true, false} {
		if err := c.StartNATS(ctx); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.NATS.Process.Kill() })
		bus, err := natsbus.Open(natsbus.Config{URLs: []string{"nats://" + c.NATS.Address}, Key: make([]byte, natsbus.KeyBytes)})
		if err != nil {
			t.Fatal(err)
		}
		archive, err := archiveOf(bus)
		if err != nil {
			t.Fatal(err)
		}
		if archive.DurableAfter() != 0 {
			t.Errorf("what is acknowledged counts as durable after %s", archive.DurableAfter())
		}
		if begin {
			_, err = archive.Archive(ctx, 0, store.ArchiveHead{}, entries)
		} else {
			var got []store.Record
			got, err = archivetest.Collect(archive.ReadArchive(ctx, 0, 1))
			archivetest.Compare(t, got, entries)
		}
		if err := errors.Join(err, bus.Close(), c.NATS.Process.Kill()); err != nil {
			t.Fatal(err)
		}
	}
}
