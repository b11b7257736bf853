package logwriters

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"taskledger/meter"
	"taskledger/store"
	"taskledger/tasklog"
)

// awayAfter is the time after which a store that has failed all writers of the node counts as away for those that
// begin, too.
const awayAfter = 5 * time.Second

// base anchors the monotonic clock.
var base = time.Now()

// watched knows since when a store takes nothing.
type watched struct {
	tasklog.Store
	pace    *rate.Limiter // of batches of functions
	failing atomic.Int64  // since when on the monotonic clock; 0 = the last append did not fail
}

// Append implements tasklog.Store.
func (s *watched) Append(
	ctx context.Context, of tasklog.Attempt, after tasklog.End, b tasklog.Batch,
) (tasklog.End, error) {
	asked := int64(time.Since(base)) | 1
	end, err := s.Store.Append(ctx, of, after, b)
	switch {
	case err == nil || errors.Is(err, tasklog.ErrTaken) || errors.Is(err, store.ErrRefused):
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

// paced passes the batches of one log on, those of functions not too fast, and counts their lines. Programs are held
// instead.
type paced struct {
	*watched
	log *Log
}

// Append implements tasklog.Store.
func (s paced) Append(
	ctx context.Context, of tasklog.Attempt, after tasklog.End, b tasklog.Batch,
) (tasklog.End, error) {
	if !s.log.held.Load() {
		if err := s.pace.Wait(ctx); err != nil {
			return tasklog.End{}, fmt.Errorf("%w: too many logs are written: %w", store.ErrUnavailable, err)
		}
	}
	end, err := s.watched.Append(ctx, of, after, b)
	if err == nil && !s.log.marks.Load() {
		s.log.writers.count(meter.LogLinesKept, uint64(len(b.Lines)))
	}
	return end, err
}
