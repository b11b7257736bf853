package cli

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"taskledger/cmd/node/internal/syncfile"
	"taskledger/collections"
	"taskledger/collections/apply"
	"taskledger/engine"
)

// syncing is the file of collections of a node, as it was read at start.
type syncing struct {
	path     string // "" = the node has none
	file     apply.File
	warnings []collections.Warning
	again    chan os.Signal // the file is to be read again
}

// read reads the file.
func (s *syncing) read(ctx context.Context, path string) (err error) {
	if s.path = path; path != "" {
		s.file, s.warnings, err = syncfile.Read(ctx, path)
	}
	return err
}

// untilHungUp returns a context that ends with the given one or, without a file, at SIGHUP. It catches SIGPIPE, so that
// the node outlives the reader of its log; programs that the node starts would inherit an ignored signal.
func (s *syncing) untilHungUp(ctx context.Context) (context.Context, context.CancelFunc) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if s.path != "" {
		s.again = make(chan os.Signal, 1) // a second one before the file was read says the same
		signal.Notify(s.again, syscall.SIGHUP)
		return ctx, func() { signal.Stop(s.again) }
	}
	if signal.Ignored(syscall.SIGHUP) { // by nohup
		return ctx, func() {}
	}
	// A terminal that is closed may send it twice, which must not end the drain: so it is caught to the end.
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// applier returns what applies the file; nil without one.
func (s *syncing) applier(node *engine.Node, name string, log *slog.Logger) *syncfile.Applier {
	if s.path == "" {
		return nil
	}
	return &syncfile.Applier{
		Path: s.path,
		Applier: &apply.Applier{
			Schedules: node.Client.Schedules(),
			Nodes:     node.Client.Operations(),
			Stores:    node.Client.Stores(),
			Shards:    shardsOf(node.Client.Operations()),
			By:        "node " + name,
		},
		File:     s.file,
		Warnings: s.warnings,
		Again:    s.again,
		Log:      log,
	}
}

// shardsOf returns what asks how many shards a cluster has.
func shardsOf(c interface {
	Shards(ctx context.Context) ([]engine.ShardInfo, error)
}) func(ctx context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		all, err := c.Shards(ctx)
		return len(all), err
	}
}
