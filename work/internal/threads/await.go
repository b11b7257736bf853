package threads

import (
	"context"
	"time"
)

// Foreign names a function of somebody else that is called once.
type Foreign struct {
	Name      string        // in errors
	Grace     time.Duration // after the end of its context; 0: DefaultGrace
	Abandoned *Abandoned    // counts it while it is left behind; nil: nobody asks
}

// Await calls fn in a goroutine of its own and returns what it returns; a *PanicError or an *EndedError if it does not.
// If fn goes on for longer than the grace after ctx has ended, it is left behind, and Await returns an *AbandonedError.
func Await[T any](ctx context.Context, f Foreign, fn func(context.Context) (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	if f.Grace <= 0 {
		f.Grace = DefaultGrace
	}
	if f.Abandoned == nil {
		f.Abandoned = new(Abandoned)
	}
	got := new(result) // of the goroutine until done is closed
	done := make(chan struct{})
	go func() {
		defer f.Abandoned.remove(got)
		defer close(done)
		Watch(f.Name, func() { got.value, got.err = fn(ctx) }, func(err error) { got.err = err })
	}()
	select {
	case <-done:
		return got.value, got.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(f.Grace)
	defer grace.Stop()
	var none T
	select {
	case <-done:
		return got.value, got.err
	case <-grace.C:
		f.Abandoned.add(got, f.Name, done)
		return none, &AbandonedError{f.Name}
	}
}
