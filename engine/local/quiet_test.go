package local_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"taskledger/engine"
	"taskledger/engine/local"
)

// Sixteen shards are no sixteen lines for whoever starts a node in memory.
func TestMemory_SaysInOneLineThatItIsReady(t *testing.T) {
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	n, err := local.StartWith(t.Context(), local.Config{Node: engine.NodeConfig{Log: logger}})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	said := log.String()
	if strings.Count(said, `msg="the node is ready"`) != 1 || !strings.Contains(said, "shards=16") || strings.Contains(said, "shard is served") {
		t.Errorf("it says:\n%s", said)
	}
}
