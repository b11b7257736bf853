package disk

import (
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
)

// Reading opens files of a layer when they are read, and keeps a few of them open that were read last. A file has a key
// that no other content of its name has. Its methods may be called concurrently.
type Reading[K comparable] struct {
	layer Layer
	most  int          // files that are open
	reads atomic.Int64 // so far

	mu     sync.RWMutex
	open   map[K]*opened
	closed bool
}

// opened is a file that is open to be read.
type opened struct {
	file File
	last atomic.Int64 // the last read of it, by the number of reads
}

// NewReading returns a Reading that keeps at most so many files of a layer open.
func NewReading[K comparable](l Layer, most int) *Reading[K] {
	return &Reading[K]{layer: l, most: most, open: map[K]*opened{}}
}

// UnopenedError reports a file that could not be opened, so that nobody knows what is in it.
type UnopenedError struct{ Err error }

func (e *UnopenedError) Error() string { return fmt.Sprintf("open what is to be read: %v", e.Err) }
func (e *UnopenedError) Unwrap() error { return e.Err }

// At returns a file as an io.ReaderAt. It need not be closed.
func (r *Reading[K]) At(of K, name string) ReaderAt {
	return func(into []byte, at int64) (int, error) { return r.readAt(of, name, into, at) }
}

// ReaderAt is a function that reads as io.ReaderAt does.
type ReaderAt func(into []byte, at int64) (int, error)

// ReadAt implements io.ReaderAt.
func (f ReaderAt) ReadAt(into []byte, at int64) (int, error) { return f(into, at) }

func (r *Reading[K]) readAt(of K, name string, into []byte, at int64) (int, error) {
	r.mu.RLock()
	if o := r.open[of]; o != nil {
		defer r.mu.RUnlock()
		return r.readFrom(o, into, at)
	}
	r.mu.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.open[of]
	if o == nil {
		if r.closed {
			return 0, fs.ErrClosed
		}
		f, _, err := r.layer.Open(name, ToRead)
		if err != nil {
			return 0, &UnopenedError{err}
		}
		r.makeRoom()
		o = &opened{file: f}
		r.open[of] = o
	}
	return r.readFrom(o, into, at)
}

func (r *Reading[K]) readFrom(o *opened, into []byte, at int64) (int, error) {
	o.last.Store(r.reads.Add(1))
	return o.file.ReadAt(into, at)
}

// makeRoom closes the file that was not read for longest, where as many are open as may be. The caller holds mu.
func (r *Reading[K]) makeRoom() {
	if len(r.open) < r.most {
		return
	}
	var of K
	var oldest *opened
	for key, o := range r.open {
		if oldest == nil || o.last.Load() < oldest.last.Load() {
			of, oldest = key, o
		}
	}
	r.close(of)
}

// Forget closes a file that is removed or replaced.
func (r *Reading[K]) Forget(of K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close(of)
}

// close closes a file if it is open. The caller holds mu.
func (r *Reading[K]) close(of K) {
	if o := r.open[of]; o != nil {
		_ = o.file.Close() // nothing was written to it
		delete(r.open, of)
	}
}

// ForgetAll closes all files, which were perhaps replaced.
func (r *Reading[K]) ForgetAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for of := range r.open {
		r.close(of)
	}
}

// Close closes all files, and no other one is opened any more.
func (r *Reading[K]) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.ForgetAll()
}
