// Package worker makes the attempts of a node, and offers its free slots to the owners of shards that others serve.
package worker

import (
	"log/slog"
	"time"

	"taskledger/engine/internal/logwriters"
	"taskledger/engine/internal/sender"
	"taskledger/task"
)

// Config configures the executor and the offers of a node. They outlive its sessions.
type Config struct {
	Behaviors map[string]task.Behavior // by id
	Slots     int                      // below 0: none
	Limits    map[string]int           // of behaviors that have one of their own
	Shards    int                      // of the cluster
	Sender    *sender.Sender
	Now       func() time.Time
	Log       *slog.Logger
	Logs      *logwriters.Writers // of attempts; nil: no logs are kept
	Value     func(key any) any   // found in the contexts of attempts; nil for most keys
}
