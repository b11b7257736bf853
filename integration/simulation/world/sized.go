package world

import (
	"context"

	"taskledger/store"
)

// sized is a store of the world's size.
type sized struct {
	store.Store
	world *world
}

// Usage implements store.Housekeeping.
func (s sized) Usage(ctx context.Context) (store.Usage, error) {
	u, err := s.Store.Usage(ctx)
	if s.world.small {
		u.Quota = 32 << 20
	}
	if err == nil && u.InUse >= u.Quota/5*4 {
		s.world.record.Filled()
	}
	if s.world.almost.Load() {
		u.InUse = u.Quota
	}
	return u, err
}
