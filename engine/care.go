package engine

import (
	"context"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/store"
)

// careEvery is the time between two looks at how full the store is.
const careEvery = time.Second

// care keeps an eye on the store, brakes before it is full, and keeps it small: the owner of shard 0 compacts, everybody while
// it is full, and the process that etcd runs in defragments.
func (m *member) care(ctx context.Context) error {
	ticker := time.NewTicker(careEvery)
	defer ticker.Stop()
	k := newHousekeeper(m.housekeeping, time.Now())
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
func (m *member) makeRoom(ctx context.Context, k *housekeeper) {
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
		case <-m.node.killed.Done():
			return
		case <-ticker.C:
		}
	}
}

// weigh takes how full the store is.
func (m *member) weigh(u store.Usage) {
	if !m.admission.weigh(u, func() string { return m.room(u) }) {
		return
	}
	if why := *m.admission.refusal.Load(); why != "" {
		m.log.Error("new tasks are refused", "cause", why)
		return
	}
	m.place.ringOwners()                       // repetitions have waited
	m.log.Warn("new tasks are accepted again") // at the level of serve, which told of the refusal
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
