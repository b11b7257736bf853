package engine

import (
	"context"
	"errors"
	"time"

	"taskledger/store"
)

const (
	// compactAfter, compactBytes and compactShare: replaced and removed values are forgotten so often, and after so
	// much growth: so many bytes, and this share of what the store holds, all of which a compaction reads.
	compactAfter = 5 * time.Minute
	compactBytes = 8 << 20
	compactShare = 32
	// compactFilled is the time after which they are forgotten again while new tasks are refused for want of room: few of
	// the bytes in use may be of tasks.
	compactFilled = 30 * time.Second
	// compactKeep is the time for which replaced and removed values are retained: watches that were cut off resume
	// within it.
	compactKeep = 5 * time.Second
	// defragmentAfter is the least time between two defragmentations, during which writes wait.
	defragmentAfter = 10 * time.Minute
	// defragmentAgain is the time after one that failed, or after which the store is still full: what a compaction has
	// forgotten may not have been free yet.
	defragmentAgain = 30 * time.Second
)

// housekeeper compacts a store and gives its unused bytes back when it is time. One goroutine uses it.
type housekeeper struct {
	store        store.Housekeeping
	seen         []seenRevision
	compacted    time.Time
	low          int64 // least bytes in use since the last compaction
	defragmented time.Time
	full         bool // at the last check, since a compaction
}

// newHousekeeper returns the housekeeper of a store whose last compaction was at a time; the zero time = long ago.
func newHousekeeper(s store.Housekeeping, compacted time.Time) *housekeeper {
	return &housekeeper{store: s, compacted: compacted}
}

type seenRevision struct {
	revision int64
	at       time.Time
}

// Keep compacts and defragments when it is time. As long as the store is not full one node, the first, compacts for
// all. It waits for the store.
func (h *housekeeper) Keep(ctx context.Context, u store.Usage, now time.Time, first bool) error {
	h.seen = append(h.seen, seenRevision{u.Revision, now})
	for len(h.seen) > 1 && now.Sub(h.seen[1].at) >= compactKeep {
		h.seen = h.seen[1:]
	}
	if h.low == 0 || u.InUse < h.low {
		h.low = u.InUse
	}
	var errs []error
	grown := u.InUse-h.low >= max(compactBytes, h.low/compactShare)
	after := compactAfter
	if filled(&u) {
		after = compactFilled
	}
	if u.Full || first && (now.Sub(h.compacted) >= after || grown) {
		errs = append(errs, h.compact(ctx, now))
	}
	wasteful := u.Size > u.Quota/2 && u.InUse < u.Size/4
	stillFull := u.Full && h.full // most compacted bytes are free by now, which etcd does not report while it is full
	h.full = u.Full && (h.full || h.compacted.Equal(now))
	pause := defragmentAfter
	if stillFull {
		pause = defragmentAgain
	}
	if (wasteful || stillFull) && now.Sub(h.defragmented) >= pause {
		h.defragmented = now
		if err := h.store.Defragment(ctx); err != nil && !errors.Is(err, store.ErrRefused) {
			h.defragmented = now.Add(defragmentAgain - defragmentAfter)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// compact forgets what was replaced or removed before the newest revision that was seen long enough ago.
func (h *housekeeper) compact(ctx context.Context, now time.Time) error {
	if now.Sub(h.seen[0].at) < compactKeep {
		return nil
	}
	if err := h.store.Compact(ctx, h.seen[0].revision); err != nil && !errors.Is(err, store.ErrRefused) {
		return err
	}
	h.compacted, h.low = now, 0
	return nil
}
