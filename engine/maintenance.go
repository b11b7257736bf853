package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/engine/internal/shard"
	"taskledger/store"
)

// maintainEvery is the interval at which the usage of the store is read.
const maintainEvery = time.Second

// maintain watches the usage of the store, refuses new tasks before it is full, and keeps it small: the owner of
// shard 0 compacts, or every node while it is full, and the process that etcd runs in defragments.
func (m *member) maintain(ctx context.Context) error {
	ticker := time.NewTicker(maintainEvery)
	defer ticker.Stop()
	k := newHousekeeper(m.housekeeping, time.Now())
	for weighed := false; ; {
		u, err := m.housekeeping.Usage(ctx)
		if least := leastQuota(m.shards); err == nil && !weighed && u.Quota < least {
			m.log.WarnContext(ctx,
				"the store's quota is too small for so many shards: new tasks may be refused for good",
				"quota", u.Quota, "shards", m.shards, "least", least)
		}
		if err == nil {
			weighed = true
			m.weigh(u)
			err = k.Keep(ctx, u, time.Now(), m.view.Load().Owners[0].Node == m.session.ID)
		}
		if err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "housekeeping of etcd failed, trying again", "err", err)
		}
		m.notices.Flush()
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// leastQuota returns how many bytes a store needs however much is trimmed: two snapshots of each shard and a tail
// of their size are stored, and must leave new tasks admitted.
func leastQuota(shards int) int64 { return int64(shards) * 3 * shard.MinTail / 4 * 5 }

// makeRoom maintains a store that is too full for a session to begin, until it is not.
func (m *member) makeRoom(ctx context.Context, k *housekeeper) {
	m.log.ErrorContext(ctx, "no session can begin", "cause", command.StoreFull)
	ticker := time.NewTicker(maintainEvery)
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
			m.log.WarnContext(ctx, "housekeeping of etcd failed, trying again", "err", err)
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
	m.log.Warn("new tasks are accepted again") // at the level at which serve shows the refusal
}

// room returns advice for a store that is almost full. The live bytes of the shards here stand for those of all
// shards.
func (m *member) room(u store.Usage) string {
	trimmed, served, live := m.cfg.archives() || m.cfg.Trimming == TrimAll, 0, int64(0)
	for _, o := range m.place.served() {
		served++
		live += o.Vitals().LiveBytes
		trimmed = trimmed && o.Vitals().TrimProblem == ""
	}
	if trimmed && served > 0 && live/int64(served)*int64(m.shards) < u.InUse/(2*liveShare) {
		return fmt.Sprintf("tasks and items are few of these, so compact etcd (etcdctl compact %d)",
			cmp.Or(u.Server, u.Revision))
	}
	return "archive, or raise the quota"
}
