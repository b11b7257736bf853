package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/store"
)

const (
	// careEvery is the time between two looks at how full the store is.
	careEvery = time.Second
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
	// presumedQuota is etcd's default, until the store has told its own.
	presumedQuota = 2 << 30
	// liveShare is the share of its part of the quota that the live tasks of a shard may take: two snapshots are kept.
	liveShare = 4
)

// care keeps an eye on the store, brakes before it is full, and keeps it small: the owner of shard 0 compacts, everybody while
// it is full, and the process that etcd runs in defragments.
func (m *member) care(ctx context.Context) error {
	ticker := time.NewTicker(careEvery)
	defer ticker.Stop()
	k := &keeping{store: m.housekeeping, compacted: time.Now()}
	for weighed := false; ; {
		u, err := m.housekeeping.Usage(ctx)
		if least := leastQuota(m.shards); err == nil && !weighed && u.Quota < least {
			m.log.WarnContext(ctx, "the store's quota is too small for so many shards: new tasks may be refused for good",
				"quota", u.Quota, "shards", m.shards, "least", least)
		}
		if err == nil {
			weighed = true
			m.weigh(u)
			err = k.keep(ctx, u, time.Now(), m.view.Load().Owners[0].Node == m.session.ID)
		}
		if err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "store is not cared for", "err", err)
		}
		m.notices.Flush()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// leastQuota is how many bytes a store needs whatever is trimmed: of each shard two snapshots and a tail of their size are kept,
// below the brake.
func leastQuota(shards int) int64 { return int64(shards) * 3 * minTail / 4 * 5 }

// makeRoom cares for a store that is too full for a session to begin, until it is not.
func (m *member) makeRoom(ctx context.Context, k *keeping) {
	m.log.ErrorContext(ctx, "no session can begin", "cause", command.StoreFull)
	ticker := time.NewTicker(careEvery)
	defer ticker.Stop()
	for {
		u, err := m.housekeeping.Usage(ctx)
		if err == nil && !u.Full {
			return
		}
		if err == nil {
			err = k.keep(ctx, u, time.Now(), false)
		}
		if err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "store is not cared for", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-m.killed.Done():
			return
		case <-ticker.C:
		}
	}
}

// weigh closes and opens the brake. Bytes in use count: the file never shrinks by itself.
func (m *member) weigh(u store.Usage) {
	m.usage.Store(&u)
	cause, why := brakeOff, ""
	switch {
	case u.Full:
		cause, why = brakeFull, fmt.Sprintf("%s (%d of %d bytes)", command.StoreFull, u.Size, u.Quota)
	case u.InUse >= u.Quota/5*4:
		cause, why = brakeInUse, fmt.Sprintf("the store holds %d of %d bytes: archive, or raise the quota", u.InUse, u.Quota)
	}
	m.brake.Store(&why)
	if m.braked == cause {
		return
	}
	m.braked = cause
	if cause == brakeOff {
		m.log.Info("new tasks are accepted again")
	} else {
		m.log.Error("new tasks are refused", "cause", why)
	}
}

// brakeCause is why the brake is closed.
type brakeCause uint8

const (
	brakeOff   brakeCause = iota
	brakeFull             // the store is full
	brakeInUse            // too many of its bytes are in use
)

// keeping is what a node remembers of the store.
type keeping struct {
	store        store.Housekeeping
	seen         []seenRevision
	compacted    time.Time
	low          int64 // least bytes in use since the last compaction
	defragmented time.Time
	full         bool // at the last look, since a compaction
}

type seenRevision struct {
	revision int64
	at       time.Time
}

// keep compacts and defragments when it is time. As long as the store is not full one node, the first, compacts for all.
func (k *keeping) keep(ctx context.Context, u store.Usage, now time.Time, first bool) error {
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
func (k *keeping) compact(ctx context.Context, now time.Time) error {
	if now.Sub(k.seen[0].at) < compactKeep {
		return nil
	}
	if err := k.store.Compact(ctx, k.seen[0].revision); err != nil && !errors.Is(err, store.ErrRefused) {
		return err
	}
	k.compacted, k.low = now, 0
	return nil
}

// liveLimit is how many bytes the live tasks of a shard may take.
func (m *member) liveLimit() int64 { return m.usage.Load().Quota / int64(liveShare*m.shards) }
