package threads

import (
	"context"
	"iter"
	"runtime"
	"sync"
)

// fetched holds a pair that the iterator yielded.
type fetched[I any] struct {
	value I
	err   error
}

// fetcher runs an iterator in a goroutine of its own.
type fetcher[I any] struct {
	items    func(context.Context) iter.Seq2[I, error]
	to       chan fetched[I]
	stopping chan struct{} // closed once nothing more is wanted
	done     chan struct{} // closed once the iterator has returned

	yielding sync.Mutex // held while a call of yield goes on
	told     bool       // yield has returned false; yielding guards it

	mu     sync.Mutex // guards failed
	failed error      // by a panic, by its end, or by breaking the rules
}

func newFetcher[I any](items func(context.Context) iter.Seq2[I, error]) *fetcher[I] {
	return &fetcher[I]{
		items:    items,
		to:       make(chan fetched[I]),
		stopping: make(chan struct{}),
		done:     make(chan struct{}),
	}
}

// run calls the iterator and returns when it does.
func (f *fetcher[I]) run(ctx context.Context, abandoned *Abandoned) {
	defer abandoned.remove(f)
	defer close(f.done)
	Watch("the iterator", func() { f.items(ctx)(f.yield) }, f.fail)
}

// yield hands a pair over. Whoever goes on after it returned false loses the goroutine, so a loop that never looks
// ends. No panic would do that: it would end the program if the iterator yields from a goroutine of its own.
func (f *fetcher[I]) yield(value I, err error) bool {
	if !f.yielding.TryLock() {
		f.fail(ErrYieldedSideBySide)
		return false
	}
	defer f.yielding.Unlock()
	if f.told {
		f.fail(ErrYieldedAfterStop)
		runtime.Goexit()
	}
	select {
	case <-f.done:
		f.fail(ErrYieldedAfterReturn)
		f.told = true
		return false
	default:
	}
	select {
	case <-f.stopping:
		f.told = true
	case <-f.done:
		f.fail(ErrYieldedAfterReturn)
		f.told = true
	case f.to <- fetched[I]{value, err}:
		f.told = err != nil
	}
	return !f.told
}

// fail notes the first failure. Yielding after the stop ends the goroutine, which is no failure of its own.
func (f *fetcher[I]) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = err
	}
}

// failure returns in what way the iterator has failed, other than by an error that it yielded; nil for none.
func (f *fetcher[I]) failure() *IteratorError {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		return nil
	}
	return &IteratorError{f.failed}
}
