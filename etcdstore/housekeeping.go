package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"taskledger/store"
)

// Usage is described in store.Housekeeping. It asks every member once and goes by those that answer in time. Where
// their quotas differ it tells the smallest.
func (s *Store) Usage(ctx context.Context) (store.Usage, error) {
	answers, silent := s.askMembers(ctx, s.timeout)
	if len(answers) == 0 {
		return store.Usage{}, fmt.Errorf("ask how full etcd is: %w", errors.Join(silent...))
	}
	var u store.Usage
	for _, a := range answers {
		quota := a.status.DbSizeQuota
		if quota <= 0 {
			quota = s.quota
		}
		if u.Quota == 0 || quota < u.Quota {
			u.Quota = quota
		}
		u.InUse = max(u.InUse, a.status.DbSizeInUse)
		u.Size = max(u.Size, a.status.DbSize)
		u.Revision = max(u.Revision, a.status.Header.GetRevision())
		u.Full = u.Full || alarmed(a.status)
	}
	if s.meta.base != 0 {
		u.Server, u.Revision = u.Revision, u.Revision+s.meta.base
	}
	return u, nil
}

// alarmed reports whether a member says that the alarm of a full store is raised; members tell alarms among their
// errors.
func alarmed(status *clientv3.StatusResponse) bool {
	for _, problem := range status.Errors {
		if strings.Contains(problem, etcdserverpb.AlarmType_NOSPACE.String()) {
			return true
		}
	}
	return false
}

// Compact is described in store.Housekeeping. It returns before etcd has freed the space. It wraps store.ErrRefused
// when the user may not compact: etcd lets none do so but root.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	err := s.bounded(ctx, func(ctx context.Context) error {
		_, err := s.client.Compact(ctx, below(s.meta.base, revision))
		return err
	})
	switch {
	case err == nil || errors.Is(err, rpctypes.ErrCompacted):
		return nil
	case refused(err):
		err = fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	return fmt.Errorf("compact to revision %d: %w", revision, err)
}

// Defragment is described in store.Housekeeping.
func (s *Store) Defragment(ctx context.Context) error {
	if s.defragment == nil {
		return fmt.Errorf("defragment etcd: %w: it is not this process's own", store.ErrRefused)
	}
	if err := s.defragment(ctx); err != nil {
		return fmt.Errorf("defragment etcd: %w", err)
	}
	if err := s.bounded(ctx, s.disarm); err != nil {
		return fmt.Errorf("end the alarm of a full etcd: %w", err)
	}
	return nil
}

// disarm ends the alarms of a full store, and no other. One that is still full raises it again at the next write.
func (s *Store) disarm(ctx context.Context) error {
	list, err := s.client.AlarmList(ctx)
	if err != nil {
		return err
	}
	for _, alarm := range list.Alarms {
		if alarm.Alarm != etcdserverpb.AlarmType_NOSPACE {
			continue
		}
		if _, err := s.client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(alarm)); err != nil {
			return err
		}
	}
	return nil
}
