package engine

import (
	"context"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/housekeeping"
	"taskledger/engine/internal/shard"
	"taskledger/store"
)

const (
	// careEvery is the time between two looks at how full the store is.
	careEvery = time.Second
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
	k := housekeeping.New(m.housekeeping, time.Now())
	for weighed := false; ; {
		u, err := m.housekeeping.Usage(ctx)
		if least := leastQuota(m.shards); err == nil && !weighed && u.Quota < least {
			m.log.WarnContext(ctx, "the store's quota is too small for so many shards: new tasks may be refused for good",
				"quota", u.Quota, "shards", m.shards, "least", least)
		}
		if err == nil {
			weighed = true
			m.weigh(u)
			err = k.Keep(ctx, u, time.Now(), m.view.Load().Owners[0].Node == m.session.ID)
		}
		if err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "etcd was not measured, compacted and defragmented, trying again", "err", err)
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
func leastQuota(shards int) int64 { return int64(shards) * 3 * shard.MinTail / 4 * 5 }

// makeRoom cares for a store that is too full for a session to begin, until it is not.
func (m *member) makeRoom(ctx context.Context, k *housekeeping.Keeper) {
	m.log.ErrorContext(ctx, "no session can begin", "cause", command.StoreFull)
	ticker := time.NewTicker(careEvery)
	defer ticker.Stop()
	for {
		u, err := m.housekeeping.Usage(ctx)
		if err == nil && !u.Full {
			return
		}
		if err == nil {
			err = k.Keep(ctx, u, time.Now(), false)
		}
		if err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "etcd was not measured, compacted and defragmented, trying again", "err", err)
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
		cause, why = brakeInUse, fmt.Sprintf("the store holds %d of %d bytes: %s", u.InUse, u.Quota, m.room(u))
	}
	m.brake.Store(&why)
	if m.braked == cause {
		return
	}
	m.braked = cause
	if cause == brakeOff {
		m.place.ringOwners()                       // repetitions have waited
		m.log.Warn("new tasks are accepted again") // at the level of serve, which told of the refusal
	} else {
		m.log.Error("new tasks are refused", "cause", why)
	}
}

// room says how to make some in a store that is almost full. What the shards here keep stands for all shards.
func (m *member) room(u store.Usage) string {
	trimmed, served, live := m.cfg.archives() || m.cfg.Trimming == TrimAll, 0, int64(0)
	for _, o := range m.place.served() {
		served++
		live += o.Vitals().LiveBytes
		trimmed = trimmed && o.Vitals().TrimProblem == ""
	}
	if trimmed && served > 0 && live/int64(served)*int64(m.shards) < u.InUse/(2*liveShare) {
		return fmt.Sprintf("tasks and items are few of these, so compact etcd (etcdctl compact %d)", u.Revision)
	}
	return "archive, or raise the quota"
}

// brakeCause is why the brake is closed.
type brakeCause uint8

const (
	brakeOff   brakeCause = iota
	brakeFull             // the store is full
	brakeInUse            // too many of its bytes are in use
)

// liveLimit is how many bytes the live tasks of a shard may take.
func (m *member) liveLimit() int64 { return m.usage.Load().Quota / int64(liveShare*m.shards) }
