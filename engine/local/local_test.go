package local_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/engine/local"
	"taskledger/filestore/filejournal"
	"taskledger/taskstore/taskstoretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start runs a node until the test ends.
func start(t *testing.T, cfg local.Config) *local.Node {
	t.Helper()
	cfg.Node.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	n, err := local.StartWith(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func TestTaskStore_KeepsItsPromisesOnFilesAndInMemory(t *testing.T) {
	for name, cfg := range map[string]local.Config{
		"Memory":        {},
		"Strict":        {Dir: t.TempDir()},
		"Opportunistic": {Dir: t.TempDir(), Files: filejournal.Options{Durability: filejournal.Opportunistic}},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			n := start(t, cfg)
			t.Logf("ready after %s", time.Since(began))
			taskstoretest.Run(t, taskstoretest.Subject{Backend: n.Stores(), Slack: 5 * time.Second})
		})
	}
}
