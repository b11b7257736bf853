// Package archiving settles what becomes of entries that snapshots cover.
package archiving

import (
	"context"
	"slices"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/engine"
	"taskledger/store"
)

// What an operator may choose; "" leaves it to the node.
const (
	JetStream = "jetstream"
	Files     = "files" // of a store in files, whose archive lies beside it
	Keep      = "keep"
	Drop      = "drop"
)

// Known reports whether an operator may say so.
func Known(choice string) bool {
	return slices.Contains([]string{"", JetStream, Files, Keep, Drop}, choice)
}

// Choose fills in the configuration of a node. Unless the operator has chosen, the node does, and why it keeps the
// journal in etcd is said; archive is nil where there is no NATS.
func Choose(ctx context.Context, choice string, archive store.Archive, cfg *engine.NodeConfig) (kept string, err error) {
	switch choice {
	case Keep:
		cfg.Archive, cfg.Trimming = archive, engine.TrimNothing
	case Drop:
		cfg.Trimming = engine.TrimAll
	case JetStream:
		if archive == nil {
			return "", &exitcode.UsageError{Problem: "--archive jetstream: there is no NATS"}
		}
		cfg.Archive = archive
	case Files:
		cfg.Archive = archive
	case "":
		if archive == nil {
			cfg.Trimming = engine.TrimNothing // said by the caller, so not by the engine as well
			return "there is no NATS", nil
		}
		cfg.Archive = archive // also where JetStream is not to be seen: it may be about to start
		if _, err := archive.Head(ctx, 0); err != nil {
			return "until there is an archive, " + err.Error(), nil
		}
	}
	return "", nil
}
