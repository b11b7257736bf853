package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"taskledger/api/operations"
	"taskledger/task"
)

// SuspendedWork tells of the buckets of a work that was suspended.
type SuspendedWork struct {
	// OpenBuckets counts the buckets that attempts have not given back yet; null = nobody could tell.
	OpenBuckets *int `json:"open_buckets"`
}

const (
	// bucketsWithin bounds the time for which a suspend waits for the open buckets of a work.
	bucketsWithin = 10 * time.Second
	// shortestLook is the first pause between two looks; each is twice as long as the one before, up to longestLook.
	shortestLook = 20 * time.Millisecond
	longestLook  = time.Second
)

// suspend keeps a task from starting. The attempts of a work end, too: it waits for their buckets.
func (s changes) suspend(c *Call) error {
	var why Reason
	err := c.ReadOptional(&why)
	if err == nil {
		err = checkReason(why.Reason)
	}
	if err == nil {
		err = s.suspendTask(c, why.Reason)
	}
	if err != nil {
		return err
	}
	ctx, cancel := c.withTimeout(bucketsWithin)
	defer cancel()
	open, is := s.awaitBuckets(ctx, c)
	switch {
	case !is:
		return c.Done()
	case open == nil || *open > 0:
		return c.JSON(http.StatusAccepted, SuspendedWork{open})
	}
	return c.JSON(http.StatusOK, SuspendedWork{open})
}

func (s changes) suspendTask(c *Call, reason string) error {
	ctx, cancel := c.Ask()
	defer cancel()
	if err := known(ctx, c, s.reader, c.id, operations.Suspend); err != nil {
		return err
	}
	_, err := s.operateMatched(ctx, c, operations.Suspend, reason)
	return err
}

// awaitBuckets waits until no bucket is open, and returns how many are, nil while that is not known; false = the task
// has no work. What keeps it from looking is no failure of the suspend.
func (s changes) awaitBuckets(ctx context.Context, c *Call) (open *int, is bool) {
	for rest := shortestLook; ; rest = min(2*rest, longestLook) {
		w, err := s.works().WorkLinear(ctx, c.id)
		switch {
		case errors.Is(err, task.ErrNotFound):
			return nil, false
		case err == nil:
			n := len(w.Open)
			open = &n
		}
		if open != nil && *open == 0 || c.Rest(ctx, rest) != nil || ctx.Err() != nil {
			return open, true
		}
	}
}
