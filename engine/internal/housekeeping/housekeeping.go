// Package housekeeping decides when a store is compacted and defragmented.
package housekeeping

import (
	"context"
	"errors"
	"time"

	"taskledger/store"
)

const (
	// compactAfter, compactBytes and compactShare: replaced and removed values are forgotten so often, and after so much
	// growth: so many bytes, and this share of what the store holds, all of which a compaction reads.
	compactAfter = 5 * time.Minute
	compactBytes = 8 << 20
	compactShare = 32
	// compactKeep is for how long values are kept that were replaced or removed: watches that were cut off resume within it.
	compactKeep = 5 * time.Second
	// defragmentAfter is the least time between two defragmentations, during which writes wait.
	defragmentAfter = 10 * time.Minute
	// defragmentAgain is the time after one that failed, or after which the store is still full: what a compaction has
	// forgotten may not have been free yet.
	defragmentAgain = 30 * time.Second
)

// Keeper compacts a store and gives its unused bytes back when it is time. One goroutine uses it.
type Keeper struct {
	store        store.Housekeeping
	seen         []seenRevision
	compacted    time.Time
	low          int64 // least bytes in use since the last compaction
	defragmented time.Time
	full         bool // at the last look, since a compaction
}

// New returns a keeper of a store whose last compaction was at a time; the zero time = long ago.
func New(s store.Housekeeping, compacted time.Time) *Keeper {
	return &Keeper{store: s, compacted: compacted}
}

type seenRevision struct {
	revision int64
	at       time.Time
}

// Keep compacts and defragments when it is time. As long as the store is not full one node, the first, compacts for all. It waits for the
// store.
func (k *Keeper) Keep(ctx context.Context, u store.Usage, now time.Time, first bool) error {
	k.seen = append(k.seen, seenRevision{u.Revision, now})
	for len(k.seen) > 1 && now.Sub(k.seen[1].at) >= compactKeep {
		k.seen = k.seen[1:]
	}
	if k.low == 0 || u.InUse < k.low {
		k.low = u.InUse
	}
	var errs []error
	grown := u.InUse-k.low >= max(compactBytes, k.low/compactShare)
	if u.Full || first && (now.Sub(k.compacted) >= compactAfter || grown) {
		errs = append(errs, k.compact(ctx, now))
	}
	wasteful := u.Size > u.Quota/2 && u.InUse < u.Size/4
	stillFull := u.Full && k.full // most of what was compacted is free by now; etcd does not tell while it is full
	k.full = u.Full && (k.full || k.compacted.Equal(now))
	pause := defragmentAfter
	if stillFull {
		pause = defragmentAgain
	}
	if (wasteful || stillFull) && now.Sub(k.defragmented) >= pause {
		k.defragmented = now
		if err := k.store.Defragment(ctx); err != nil && !errors.Is(err, store.ErrRefused) {
			k.defragmented = now.Add(defragmentAgain - defragmentAfter)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// compact forgets what was replaced or removed before the newest revision that was seen long enough ago.
func (k *Keeper) compact(ctx context.Context, now time.Time) error {
	if now.Sub(k.seen[0].at) < compactKeep {
		return nil
	}
	if err := k.store.Compact(ctx, k.seen[0].revision); err != nil && !errors.Is(err, store.ErrRefused) {
		return err
	}
	k.compacted, k.low = now, 0
	return nil
}
