package trees

import (
	"cmp"

	"taskledger/work"
)

const (
	// DefaultWorkers and DefaultThreads stand in for zero fields of Limits.
	DefaultWorkers = 3
	DefaultThreads = 2
	// MaxWorkers and MaxThreads bound them.
	MaxWorkers = work.MaxWorkers
	MaxThreads = work.MaxThreads
)

// Limits bound a run. They are part of the definition of the work.
type Limits struct {
	// Workers is the number of workers, 1 to MaxWorkers. 0 stands for 3.
	Workers int64 `json:"workers"`
	// Threads is the number of files that a worker looks at side by side, 1 to MaxThreads. 0 stands for 2.
	Threads int64 `json:"threads"`
	// MaxDeletes is the number of files, links and directories that may be deleted. nil: any number.
	MaxDeletes *int64 `json:"max_deletes,omitempty"`
}

// Equal reports whether two limits are the same, defaults filled in.
func (l Limits) Equal(other Limits) bool {
	l, other = l.complete(), other.complete()
	if l.MaxDeletes == nil || other.MaxDeletes == nil {
		return l == other
	}
	return l.Workers == other.Workers && l.Threads == other.Threads && *l.MaxDeletes == *other.MaxDeletes
}

func (l Limits) complete() Limits {
	l.Workers, l.Threads = cmp.Or(l.Workers, DefaultWorkers), cmp.Or(l.Threads, DefaultThreads)
	return l
}
