package behaviors

import (
	"sync/atomic"

	"taskledger/store"
)

// Then returns a future that resolves with what fn makes of the result of f; a failure of f passes through without a
// call of fn. fn runs once, also if nobody waits for the returned future, in the goroutine that first learns of the
// outcome: one of the client's, or the caller's if f is a composed future that has resolved. A panic of fn becomes
// the error of the returned future.
func Then[A, B any](f *Future[A], fn func(A) (B, error)) *Future[B] {
	return Handle(f, func(a A, err error) (B, error) {
		if err != nil {
			var none B
			return none, err
		}
		return fn(a)
	})
}

// Handle is Then for both outcomes: fn gets the result or the error of f, which is task.ErrClosed if f was closed.
func Handle[A, B any](f *Future[A], fn func(A, error) (B, error)) *Future[B] {
	p := newPromise[B](f)
	f.outcome.Then(func(a A, err error) {
		p.run(func() (B, error) { return fn(a, err) })
	})
	return p.future()
}

// All returns a future that resolves with all results in the order of fs, or with the first failure. Without futures
// it resolves with an empty list.
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

// Any returns a future that resolves with the first success, or with the last failure if there is no success. Without
// futures it fails with a *store.InvalidError.
func Any[R any](fs ...*Future[R]) *Future[R] {
	p := newPromise[R](closers(fs)...)
	if len(fs) == 0 {
		p.reject(&store.InvalidError{Field: "futures", Problem: "any of none"})
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
