package shard

import (
	"context"
	"fmt"
	"sync"

	"taskledger/store"
)

// An answer may say what no entry of the journal stands for: that a command was refused, that there is no such
// task, that an outcome comes too late. Only the shard's owner can know, and the lease may have been revoked
// although it was renewed a moment ago. So the owner lets such an answer wait for a proof, a read which shows that
// the shard still is its own. It is the counterpart of the barrier of senders.

// prover makes the reads of one owner. One is under way at a time, for all who asked before it began.
type prover struct {
	cfg       *Config
	ownership store.Ownership

	mu      sync.Mutex
	waiting []func(error)
	reading bool
}

// prove calls proven once, with an error when somebody else owns the shard or nobody could tell; not after the
// session.
func (p *prover) prove(proven func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, proven)
	if !p.reading {
		p.reading = true
		p.cfg.Host.Spawn(p.run)
	}
}

// run reads until nobody waits.
func (p *prover) run(ctx context.Context) {
	for {
		p.mu.Lock()
		asked := p.waiting
		p.waiting = nil
		p.reading = len(asked) > 0
		p.mu.Unlock()
		if len(asked) == 0 {
			return
		}
		err := p.read(ctx)
		for _, proven := range asked {
			proven(err)
		}
	}
}

func (p *prover) read(ctx context.Context) error {
	members, err := p.cfg.Members.ReadMembers(ctx)
	if err != nil {
		return fmt.Errorf("read who owns shard %d: %w", p.ownership.Shard, err)
	}
	if now := members.Owners[p.ownership.Shard]; now.Revision != p.ownership.Revision {
		return store.ErrFenced
	}
	return nil
}

// stillOwner waits for a proof; an error says that there is none.
func (p *prover) stillOwner(ctx context.Context) error {
	proven := make(chan error, 1)
	p.prove(func(err error) { proven <- err })
	select {
	case err := <-proven:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
