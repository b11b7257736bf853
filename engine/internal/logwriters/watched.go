package logwriters

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"taskledger/meter"
	"taskledger/store"
	"taskledger/tasklog"
)

// awayAfter is the time for which a store has failed all writers of the node after which it counts as away for those
// that begin, too.
const awayAfter = 5 * time.Second

// base anchors the monotonic clock.
var base = time.Now()

// watched counts the lines that a store takes, and knows since when it takes none.
type watched struct {
	tasklog.Store
	meter   meter.Meter
	failing atomic.Int64 // since when on the monotonic clock; 0 = the last append did not fail
}

// Append implements tasklog.Store.
func (s *watched) Append(
	ctx context.Context, of tasklog.Attempt, after tasklog.End, b tasklog.Batch,
) (tasklog.End, error) {
	asked := int64(time.Since(base)) | 1
	end, err := s.Store.Append(ctx, of, after, b)
	switch {
	case err == nil:
		s.failing.Store(0)
		if s.meter != nil {
			s.meter.Count(meter.LogLinesKept, "", int64(len(b.Lines)))
		}
	case errors.Is(err, tasklog.ErrTaken) || errors.Is(err, store.ErrRefused):
		s.failing.Store(0)
	default:
		s.failing.CompareAndSwap(0, asked)
	}
	return end, err
}

// away reports whether the store has failed everybody for long.
func (s *watched) away() bool {
	since := s.failing.Load()
	return since != 0 && time.Since(base)-time.Duration(since) >= awayAfter
}
