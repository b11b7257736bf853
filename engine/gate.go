package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/store"
)

const (
	// countWithin bounds the wait of calls for the cluster to say how many shards it has. Owners that answer later
	// refuse what is sent to a wrong shard.
	countWithin = time.Second
	countPause  = time.Second // between questions that were refused
)

// gate holds calls until Run serves, and refuses them once Run has found that they would go astray.
type gate struct {
	opened  chan struct{}
	once    sync.Once
	refusal atomic.Pointer[store.InvalidError]
}

func newGate() *gate { return &gate{opened: make(chan struct{})} }

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

// refuse lets calls end with an error from now on.
func (g *gate) refuse(why *store.InvalidError) {
	g.refusal.Store(why)
	g.open()
}

// pass waits until calls may be made.
func (g *gate) pass(ctx context.Context) error {
	select {
	case <-g.opened:
	default:
		select {
		case <-g.opened:
		case <-ctx.Done():
			return fmt.Errorf("%w: the client is not running: %w", store.ErrUnavailable, context.Cause(ctx))
		}
	}
	if why := g.refusal.Load(); why != nil {
		return why
	}
	return nil
}

// checkShards asks for the number of shards until it is known, and returns a *store.InvalidError if the client has
// another one. Calls pass the gate then, or after a second.
func (c *Client) checkShards(ctx context.Context) error {
	defer c.gate.open()
	defer time.AfterFunc(countWithin, c.gate.open).Stop()
	for {
		count, err := c.countShards(ctx)
		switch {
		case err == nil && count != 0 && count != c.cfg.Shards:
			problem := fmt.Sprintf("%d, want %d: as many as the cluster has", c.cfg.Shards, count)
			why := &store.InvalidError{Field: "shards", Problem: problem}
			c.gate.refuse(why)
			return why
		case err == nil:
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(countPause):
		}
	}
}

// countShards asks the owner of shard 0, which every cluster has, for the number of shards; 0 = it does not say.
func (c *Client) countShards(ctx context.Context) (int, error) {
	a, err := c.sender.Ask(ctx, 0, command.LaneQuery, &command.Info{})
	if err == nil {
		err = a.Err("")
	}
	if err != nil {
		return 0, err
	}
	report, err := command.ReadLenient[command.ShardReport](a.Data)
	return int(report.Shards), err
}
