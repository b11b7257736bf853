package store

import (
	"context"
)

// Usage says how full the store is.
type Usage struct {
	InUse    int64 `json:"in_use"` // bytes that hold something, as of the last writes; the largest of all members
	Size     int64 `json:"size"`   // bytes of the file, which never shrinks by itself; the largest of all members
	Quota    int64 `json:"quota"`  // bytes of the file above which the store takes no writes
	Revision int64 `json:"revision"`
	Server   int64 `json:"-"`    // the same as the tools of the server count it, where they do otherwise; 0 = as Revision
	Full     bool  `json:"full"` // the alarm is raised: the store takes no writes that need space
}

// Housekeeping keeps the store from filling up.
type Housekeeping interface {
	Usage(ctx context.Context) (Usage, error)
	// Compact removes values that were replaced or deleted before the revision; to do so twice is no error. It
	// wraps ErrRefused if the caller may not compact, so that the store has to compact itself.
	Compact(ctx context.Context, revision int64) error
	// Defragment gives unused bytes of the file back, and then ends an alarm. Writes wait for seconds meanwhile. It
	// wraps ErrRefused unless the store is inside this process.
	Defragment(ctx context.Context) error
}
