package logwriters

import (
	"context"
	"errors"
	"sync"
	"time"

	"taskledger/store"
	"taskledger/tasklog"
)

const (
	// maxMarks bounds the logs whose ends a node has still to mark, of some 100 bytes each, and a batch at most whose
	// outcome is unknown. The ends of more are not marked: the counter of dropped lines alone tells of them.
	maxMarks = 1024
	// markAgain is the time from a mark that the store did not take until the next one is tried.
	markAgain = 2 * time.Second
)

// marks has lines say in logs that their last lines are missing, as soon as the store takes them.
type marks struct {
	ctx      context.Context // ends all
	stopping chan struct{}   // closed when the node stops: each mark is tried once more
	running  *sync.WaitGroup

	mu      sync.Mutex
	waiting []*tasklog.Writer // the first one is under way
}

// add takes a writer that has ended, or never ran. It never waits.
func (m *marks) add(w *tasklog.Writer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) >= maxMarks || m.ctx.Err() != nil {
		return
	}
	m.waiting = append(m.waiting, w)
	if len(m.waiting) == 1 {
		m.running.Go(func() { m.run(w) })
	}
}

// full reports whether add takes nothing.
func (m *marks) full() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting) >= maxMarks
}

// run marks the ends of logs, from that of a first writer on, until none is left.
func (m *marks) run(w *tasklog.Writer) {
	for ; w != nil; w = m.next() {
		for again := true; again; {
			select {
			case <-m.stopping:
				again = false
			default:
			}
			err := w.Mark(m.ctx)
			if err == nil || errors.Is(err, tasklog.ErrTaken) || errors.Is(err, store.ErrRefused) {
				break
			}
			select {
			case <-m.stopping:
			case <-time.After(markAgain):
			}
		}
	}
}

// next takes the end of the mark under way, and returns the writer whose log comes next; nil = there is none.
func (m *marks) next() *tasklog.Writer {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting = m.waiting[1:]; len(m.waiting) == 0 {
		return nil
	}
	return m.waiting[0]
}
