// Package awaited is a value that comes once, and those who wait for it.
package awaited

import "sync"

// Value is bytes or an error. The zero value has not come. Methods may be called concurrently.
type Value struct {
	mu       sync.Mutex
	resolved bool
	result   []byte
	err      error
	done     chan struct{} // nil until somebody asks for it
	waiters  *Waiter
	then     []func([]byte, error)
}

// Waiter is a goroutine that waits for a value.
type Waiter struct {
	Woken chan struct{} // gets one value
	next  *Waiter       // that waits for the same value
}

// NewWaiter makes waiters for a pool.
func NewWaiter() any { return &Waiter{Woken: make(chan struct{}, 1)} }

// Resolve lets the value come, unless it has. What was to be called is given to start, which must not wait for it.
func (v *Value) Resolve(result []byte, err error, start func(fn func())) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.resolved {
		return
	}
	v.resolved, v.result, v.err = true, result, err
	if v.done != nil {
		close(v.done)
	}
	for w := v.waiters; w != nil; {
		next := w.next // w may wait for something else as soon as it is woken
		w.next = nil
		w.Woken <- struct{}{}
		w = next
	}
	v.waiters = nil
	for _, fn := range v.then {
		start(func() { fn(result, err) })
	}
	v.then = nil
}

// Resolved reports whether the value has come; Get returns it then.
func (v *Value) Resolved() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.resolved
}

// Get returns the value. It must have come, or its caller's waiter been woken.
func (v *Value) Get() ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.result, v.err
}

// Done is closed when the value has come.
func (v *Value) Done() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.done == nil {
		v.done = make(chan struct{})
		if v.resolved {
			close(v.done)
		}
	}
	return v.done
}

// Await returns a waiter of the pool that is woken when the value comes; nil when it has.
func (v *Value) Await(idle *sync.Pool) *Waiter {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.resolved {
		return nil
	}
	w := idle.Get().(*Waiter)
	v.waiters, w.next = w, v.waiters
	return w
}

// Leave takes a waiter out; false when it has been woken.
func (v *Value) Leave(w *Waiter) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for at := &v.waiters; *at != nil; at = &(*at).next {
		if *at == w {
			*at, w.next = w.next, nil
			return true
		}
	}
	return false
}

// Waits reports whether anybody is in Await.
func (v *Value) Waits() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.waiters != nil
}

// Then gives fn to start once the value has come, which must not wait for it.
func (v *Value) Then(fn func(result []byte, err error), start func(fn func())) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.resolved {
		v.then = append(v.then, fn)
		return
	}
	result, err := v.result, v.err
	start(func() { fn(result, err) })
}
