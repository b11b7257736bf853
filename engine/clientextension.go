package engine

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"

	"taskledger/store"
)

// clientExtension is the part of a front in every process, whether or not that owns shards. A function that is nil
// stands for a part that the front does not have. None but Run may block.
type clientExtension struct {
	// Hint names the hints that owners of shards send to the front in this process; "" = they send none. No other
	// front has the name.
	Hint string
	// Hinted takes a hint; it is there if Hint is.
	Hinted func(data []byte) error
	// Again learns that owners may have changed, or that hints may have been lost.
	Again func()
	// Drain learns that the node in this process takes on no more work.
	Drain func()
	// Run serves the front until ctx ends.
	Run func(ctx context.Context) error
	// Close ends the calls that still wait. Run has returned, or will never be called.
	Close func()
}

type clientExtensions []clientExtension

// sendHint sends a hint to the process of a sender.
type sendHint func(sender string, data []byte)

func hintSubject(sender, name string) string { return "node." + sender + "." + name }

// subscribe takes the hints that come for fronts in the process of a sender.
func (all clientExtensions) subscribe(ctx context.Context, bus store.Bus, sender string, log *slog.Logger) error {
	for _, x := range all {
		if x.Hint == "" {
			continue
		}
		err := bus.Subscribe(ctx, hintSubject(sender, x.Hint), "", func(m store.Message) { x.take(m.Data, log) })
		if err != nil {
			return fmt.Errorf("subscribe to hints: %w", err)
		}
	}
	return nil
}

// hinted hands a hint to its front.
func (all clientExtensions) hinted(name string, data []byte, log *slog.Logger) {
	for _, x := range all {
		if x.Hint == name {
			x.take(data, log)
		}
	}
}

// take hands a hint to the front.
func (x *clientExtension) take(data []byte, log *slog.Logger) {
	if err := x.Hinted(data); err != nil {
		log.Warn("hint cannot be read", "of", x.Hint, "err", err)
	}
}

// run serves the fronts until ctx ends.
func (all clientExtensions) run(ctx context.Context, g *errgroup.Group) {
	for _, x := range all {
		if x.Run != nil {
			g.Go(func() error { return x.Run(ctx) })
		}
	}
}

// again lets fronts know that owners may have changed, or that hints may have been lost.
func (all clientExtensions) again() {
	for _, x := range all {
		if x.Again != nil {
			x.Again()
		}
	}
}

// drain lets fronts know that the node in this process takes on no more work.
func (all clientExtensions) drain() {
	for _, x := range all {
		if x.Drain != nil {
			x.Drain()
		}
	}
}

// close ends the calls to fronts that still wait.
func (all clientExtensions) close() {
	for _, x := range all {
		if x.Close != nil {
			x.Close()
		}
	}
}
