package engine

import (
	"context"
	"time"

	"taskledger/engine/internal/sender"
)

const (
	// sweepMailboxesEvery is the time between two sweeps of mailboxes that others have left behind. Senders give up
	// after as long: batches that they still want answered they have posted again since, or will.
	sweepMailboxesEvery = sender.GiveUp
)

// sweepMailboxes removes the mailboxes of senders that are gone, as long as this node owns shard 0: batches and
// answers that were not written during the last period.
func (m *member) sweepMailboxes(ctx context.Context) error {
	timer := time.NewTimer(sweepMailboxesEvery)
	defer timer.Stop()
	var noted int64
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		noted = m.sweepOnce(ctx, noted)
		timer.Reset(sweepMailboxesEvery)
	}
}

// sweepOnce removes mailboxes last written at a revision up to noted. It returns the revision to note for the next
// time; 0 = none.
func (m *member) sweepOnce(ctx context.Context, noted int64) int64 {
	if m.view.Load().Owners[0].Node != m.session.ID {
		return 0
	}
	swept, revision, err := m.sweeper.SweepMailboxes(ctx, noted)
	if swept > 0 {
		m.log.InfoContext(ctx, "mail of senders that are gone is removed", "keys", swept)
	}
	if err != nil {
		if ctx.Err() == nil {
			m.log.WarnContext(ctx, "mail of senders that are gone will be swept again", "err", err)
		}
		return noted
	}
	return revision
}
