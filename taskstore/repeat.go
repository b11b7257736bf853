package taskstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"taskledger/item"
	"taskledger/store"
	"taskledger/task"
)

const (
	// The pause before a call is repeated doubles from the first to the longest.
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
	// keysFor bounds the time in which an update is repeated: a store remembers its key for an hour.
	keysFor = 50 * time.Minute
)

// repeat asks until there is an answer, or ctx ends.
func (s *Store) repeat(ctx context.Context, ask func() error) error {
	pause := firstPause
	for {
		err := ask()
		if err == nil || s.once || !isNoAnswer(err) {
			return err
		}
		if ended := rest(ctx, &pause, err); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// keyed is repeat for what changes items, under a key, which tells the store how long ago it was asked first, and
// of an update within how many others: claims, which have nil there, may be overtaken by more. lost says that the
// answer to an earlier try was.
func (s *Store) keyed(
	ctx context.Context,
	key *string,
	age *time.Duration,
	within *int,
	ask func() error,
) (lost bool, err error) {
	claim, called := within == nil, time.Now()
	if s.once {
		return false, ask()
	}
	n, err := s.calls.begin(ctx, claim)
	if err != nil {
		return false, err
	}
	under := true
	defer func() {
		if under {
			s.calls.end(n, claim)
		}
	}()
	drawn := *key == ""
	if drawn {
		*key = rand.Text()
	}
	began, given, pause, unknown := time.Now(), *age, firstPause, false
	if given > 0 {
		given += began.Sub(called)
	}
	for {
		if *age = given; unknown {
			*age += time.Since(began)
		}
		if !claim && unknown && given == 0 { // it is the window that has counted
			*within = atOnce
		}
		err := ask()
		forgotten := errors.Is(err, item.ErrForgotten)
		switch {
		case err == nil:
			return unknown, nil
		case forgotten && !(claim && drawn):
			return true, err
		case !isNoAnswer(err):
			if ended := ctx.Err() != nil && errors.Is(err, context.Cause(ctx)); unknown &&
				(ended || errors.Is(err, task.ErrClosed)) {
				return unknown, fmt.Errorf("%w: %w", task.ErrUnknown, err)
			}
			return unknown, err
		}
		unknown = unknown || errors.Is(err, task.ErrUnknown)
		if ended := rest(ctx, &pause, err); ended != nil {
			if unknown && !errors.Is(err, task.ErrUnknown) {
				err = fmt.Errorf("%w: %w", task.ErrUnknown, err)
			}
			return unknown, fmt.Errorf("%w: %w", ended, err)
		}
		switch {
		case !unknown: // nothing was accepted: the key is not used
			if given > 0 {
				given += time.Since(began)
			}
			n, began = s.calls.again(n, claim), time.Now()
		case claim && drawn && (forgotten || !s.calls.remembered(n) || time.Since(began) > keysFor):
			// The store may have forgotten the key. What was claimed under it, if anything, is available again when
			// its time is over.
			s.calls.end(n, claim)
			if n, err = s.calls.begin(ctx, claim); err != nil {
				under = false
				return true, fmt.Errorf("%w: %w", task.ErrUnknown, err)
			}
			*key, began, given, unknown = rand.Text(), time.Now(), 0, false
		case time.Since(began) > keysFor:
			return true, err
		}
	}
}

// isNoAnswer says that a call may be repeated.
func isNoAnswer(err error) bool {
	if errors.Is(err, task.ErrClosed) {
		return false
	}
	_, full := errors.AsType[*task.OverloadError](err)
	return full || errors.Is(err, store.ErrUnavailable) || errors.Is(err, task.ErrUnknown)
}

// isClock says that a call was refused because the clocks of the caller and of the store's owner differ: nothing was
// changed, and clocks are set right.
func isClock(err error) bool {
	refused, is := errors.AsType[*store.InvalidError](err)
	return is && refused.Field == "clock"
}

// rest pauses before a call is repeated. It returns the cause of ctx when that ends.
func rest(ctx context.Context, pause *time.Duration, err error) error {
	wait := *pause
	*pause = min(2**pause, longestPause)
	if full, ok := errors.AsType[*task.OverloadError](err); ok {
		wait = max(wait, full.RetryAfter)
	}
	return sleep(ctx, wait)
}

// sleep returns the cause of ctx when that ends earlier.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
