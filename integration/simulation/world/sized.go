package world

import (
	"context"
	"sync/atomic"

	"taskledger/store"
)

// sized is a store that reports the size of a history's setup.
type sized struct {
	store.Store
	small  bool
	almost *atomic.Bool // it looks almost full
	record *recorder
}

// Usage implements store.Housekeeping.
func (s sized) Usage(ctx context.Context) (store.Usage, error) {
	u, err := s.Store.Usage(ctx)
	if s.small {
		u.Quota = 32 << 20
	}
	if err == nil && u.InUse >= u.Quota/5*4 {
		s.record.Filled()
	}
	if s.almost.Load() {
		u.InUse = u.Quota
	}
	return u, err
}
