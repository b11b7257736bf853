package store

import (
	"context"
)

// Usage is how full the store is.
type Usage struct {
	InUse    int64 `json:"in_use"` // bytes that hold something, as of the last writes; the worst of all members
	Size     int64 `json:"size"`   // bytes of the file, which never shrinks by itself; the worst of all members
	Quota    int64 `json:"quota"`  // of the file, above which the store takes no writes
	Revision int64 `json:"revision"`
	Full     bool  `json:"full"` // the alarm is raised: the store takes no writes that need space
}

// Housekeeping keeps the store from filling up.
type Housekeeping interface {
	Usage(ctx context.Context) (Usage, error)
	// Compact forgets replaced and removed values of before the revision. One that was compacted already is no error. It
	// wraps ErrRefused when the store must compact itself because the caller may not.
	Compact(ctx context.Context, revision int64) error
	// Defragment gives unused bytes of the file back, and then ends an alarm. Writes wait meanwhile, for seconds. It wraps
	// ErrRefused where the store is not the process's own.
	Defragment(ctx context.Context) error
}
