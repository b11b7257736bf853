package taskstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"
)

// Between two attempts of a call passes a random part of a time that doubles from one to the other.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// keyed makes a call under a key, and repeats it, if the store does so. holds tells that it may succeed at once, so that its key has to be
// remembered from now on.
func (s *Store) keyed(ctx context.Context, key *string, holds bool, call func() error) error {
	if !s.repeat {
		return call()
	}
	if *key == "" {
		*key = rand.Text()
	}
	one, err := s.window.enter(ctx, holds)
	if err != nil {
		return fmt.Errorf("store %s: too many calls are under way: %w", s.name, err)
	}
	err = again(ctx, func() error {
		err := call()
		if err != nil {
			one.hold()
		}
		return err
	})
	one.leave(err == nil)
	return err
}

// ask asks a question, and repeats it, if the store does so.
func (s *Store) ask(ctx context.Context, question func() error) error {
	if !s.repeat {
		return question()
	}
	return again(ctx, question)
}

// again makes a call until its outcome is known, or ctx ends. Then it tells if the call may have been applied.
func again(ctx context.Context, call func() error) error {
	maybe := false
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := call()
		maybe = maybe || errors.Is(err, ErrUnknown)
		wait, repeat := repeatable(err, pause)
		if err == nil || !repeat && !ends(ctx, err) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			continue
		}
		if maybe && !errors.Is(err, ErrUnknown) {
			err = fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		if !ends(ctx, err) {
			err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
		return err
	}
}

// ends tells if a call failed because ctx has ended.
func ends(ctx context.Context, err error) bool {
	return ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx)))
}

// repeatable tells if a call that failed can be made again, and when.
func repeatable(err error, pause time.Duration) (time.Duration, bool) {
	pause = pause/2 + mathrand.N(pause/2)
	if full, is := errors.AsType[*OverloadError](err); is {
		return max(pause, min(full.RetryAfter, 10*lastPause)), true
	}
	return pause, !errors.Is(err, ErrClosed) && (errors.Is(err, ErrUnknown) || errors.Is(err, ErrUnavailable))
}
