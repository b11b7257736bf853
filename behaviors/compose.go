package behaviors

import (
	"sync/atomic"

	"taskledger/engine"
)

// Then runs fn on success, once, in the goroutine that first learns of it: one of the client's, or the caller's when f is
// a composed future that has resolved. A failure passes through. fn runs whether or not anybody waits for the returned
// future; its panic becomes that future's error.
func Then[A, B any](f *Future[A], fn func(A) (B, error)) *Future[B] {
	return Handle(f, func(a A, err error) (B, error) {
		if err != nil {
			var none B
			return none, err
		}
		return fn(a)
	})
}

// Handle runs fn on either outcome, as Then does. The error is engine.ErrClosed when f was closed.
func Handle[A, B any](f *Future[A], fn func(A, error) (B, error)) *Future[B] {
	p := newPromise[B](f)
	f.outcome.Then(func(a A, err error) {
		p.run(func() (B, error) { return fn(a, err) })
	})
	return p.future()
}

// All resolves with every result in order, or with the first failure; with an empty list when there are no futures.
func All[R any](fs ...*Future[R]) *Future[[]R] {
	p := newPromise[[]R](closers(fs)...)
	results := make([]R, len(fs))
	if len(fs) == 0 {
		p.resolve(results, nil)
	}
	var known atomic.Int64
	for i, f := range fs {
		f.outcome.Then(func(r R, err error) {
			if err != nil {
				p.reject(err)
				return
			}
			results[i] = r
			if known.Add(1) == int64(len(fs)) {
				p.resolve(results, nil)
			}
		})
	}
	return p.future()
}

// Any resolves with the first success, or with the last failure; with an *engine.InvalidError when there are no futures.
func Any[R any](fs ...*Future[R]) *Future[R] {
	p := newPromise[R](closers(fs)...)
	if len(fs) == 0 {
		p.reject(&engine.InvalidError{Field: "futures", Problem: "any of none"})
	}
	var failures atomic.Int64
	for _, f := range fs {
		f.outcome.Then(func(r R, err error) {
			if err == nil {
				p.resolve(r, nil)
			} else if failures.Add(1) == int64(len(fs)) {
				p.reject(err)
			}
		})
	}
	return p.future()
}

func closers[R any](fs []*Future[R]) []closer {
	all := make([]closer, len(fs))
	for i, f := range fs {
		all[i] = f
	}
	return all
}
