package futures

import "sync"

// value is bytes or an error that come once. The zero value has not come. Methods may be called concurrently.
type value struct {
	mu      sync.Mutex
	came    bool
	result  []byte
	err     error
	closes  chan struct{} // when the value comes; nil until somebody asks for it
	waiters *waiter
	after   []func([]byte, error)
}

// waiter is a goroutine that waits for a value.
type waiter struct {
	woken chan struct{} // gets one value
	next  *waiter       // that waits for the same value
}

// newWaiter makes waiters for a pool.
func newWaiter() any { return &waiter{woken: make(chan struct{}, 1)} }

// resolve sets the value, unless it is set. It passes each function that waits for it to start, which must not wait
// for the function.
func (v *value) resolve(result []byte, err error, start func(fn func())) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.came {
		return
	}
	v.came, v.result, v.err = true, result, err
	if v.closes != nil {
		close(v.closes)
	}
	for w := v.waiters; w != nil; {
		next := w.next // w may wait for something else as soon as it is woken
		w.next = nil
		w.woken <- struct{}{}
		w = next
	}
	v.waiters = nil
	for _, fn := range v.after {
		start(func() { fn(result, err) })
	}
	v.after = nil
}

// resolved reports whether the value has come; get returns it then.
func (v *value) resolved() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.came
}

// get returns the value. It must have come, or its caller's waiter been woken.
func (v *value) get() ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.result, v.err
}

// done is closed when the value has come.
func (v *value) done() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closes == nil {
		v.closes = make(chan struct{})
		if v.came {
			close(v.closes)
		}
	}
	return v.closes
}

// await returns a waiter of the pool that is woken when the value comes; nil when it has.
func (v *value) await(idle *sync.Pool) *waiter {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.came {
		return nil
	}
	w := idle.Get().(*waiter)
	v.waiters, w.next = w, v.waiters
	return w
}

// leave takes a waiter out; false when it has been woken.
func (v *value) leave(w *waiter) bool {
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

// waits reports whether anybody is in await.
func (v *value) waits() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.waiters != nil
}

// then gives fn to start once the value has come, which must not wait for it.
func (v *value) then(fn func(result []byte, err error), start func(fn func())) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.came {
		v.after = append(v.after, fn)
		return
	}
	result, err := v.result, v.err
	start(func() { fn(result, err) })
}
