// Package logqueue writes lines of text in the background: a reader who is slow, or gone, holds up nobody who has
// something to say.
package logqueue

import (
	"io"
	"slices"
	"sync"
	"time"
)

const (
	// maxLines bounds the number of waiting lines.
	maxLines = 1024
	// maxBytes bounds the bytes of all waiting lines; a longer line is dropped.
	maxBytes = 1 << 20
)

// Writer queues what is written, for Run. What does not fit, and what cannot be written, is dropped and counted.
type Writer struct {
	to   io.Writer
	tell func(dropped int64) []byte

	mu      sync.Mutex
	changed *sync.Cond
	queue   [][]byte
	bytes   int
	untold  int64 // dropped, and not told yet
	dropped int64
	closed  bool
	ended   chan struct{}
}

// New returns a Writer to a place. tell makes the line that says how many were dropped, before the next one that is
// written; nil says nothing.
func New(to io.Writer, tell func(dropped int64) []byte) *Writer {
	w := &Writer{to: to, tell: tell, ended: make(chan struct{})}
	w.changed = sync.NewCond(&w.mu)
	return w
}

// Write implements io.Writer. It waits for nobody, and never fails.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || len(w.queue) == maxLines || w.bytes+len(p) > maxBytes {
		w.untold++
		w.dropped++
		return len(p), nil
	}
	w.queue = append(w.queue, slices.Clone(p))
	w.bytes += len(p)
	w.changed.Signal()
	return len(p), nil
}

// Dropped returns the number of dropped lines.
func (w *Writer) Dropped() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Run writes lines until Close, and then those that wait.
func (w *Writer) Run() {
	defer close(w.ended)
	for {
		p, untold, more := w.next()
		if !more {
			return
		}
		if untold > 0 && w.tell != nil {
			if _, err := w.to.Write(w.tell(untold)); err != nil {
				w.drop(untold, 1)
				continue
			}
		}
		if _, err := w.to.Write(p); err != nil {
			w.drop(0, 1)
		}
	}
}

// next waits for a line, and reports whether there is one: after Close there may be none.
func (w *Writer) next() (p []byte, untold int64, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 {
		if w.closed {
			return nil, 0, false
		}
		w.changed.Wait()
	}
	p = w.queue[0]
	w.queue[0] = nil
	w.queue = w.queue[1:]
	w.bytes -= len(p)
	untold, w.untold = w.untold, 0
	return p, untold, true
}

// drop counts lines as dropped that could not be written, and as not told again those of which it could not be said.
func (w *Writer) drop(again, lines int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.untold += again + lines
	w.dropped += lines
}

// Close drops what is written from now on, and waits until Run has written the rest, for so long at most.
func (w *Writer) Close(most time.Duration) {
	w.mu.Lock()
	w.closed = true
	w.changed.Signal()
	w.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-w.ended:
	case <-timer.C:
	}
}
