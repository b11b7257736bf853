package embedded_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"taskledger/engine"
	"taskledger/engine/embedded"
	"taskledger/internal/advertised"
)

// onServed is told when a node begins to serve a shard, before it is ready.
type onServed struct{ tell func() }

func (h onServed) Enabled(context.Context, slog.Level) bool { return true }
func (h onServed) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h onServed) WithGroup(string) slog.Handler            { return h }

func (h onServed) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "shard is served" {
		h.tell()
	}
	return nil
}

// Whoever joined has to find the servers again while the node still reads its shards, which may take longer than a
// session lives.
func TestStart_ServersAreFoundBeforeTheShardsAreServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var served, found atomic.Int64
	log := slog.New(onServed{func() {
		if _, err := advertised.Read(dir); err == nil {
			found.Add(1)
		}
		served.Add(1) // last: a shard may be served beside the comparison
	}})
	n, err := embedded.StartWith(t.Context(), embedded.Config{Dir: dir, Node: engine.NodeConfig{Log: log}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if all := served.Load(); all == 0 || found.Load() < all {
		t.Errorf("the servers were found at %d of %d shards that began to be served", found.Load(), all)
	}
}
