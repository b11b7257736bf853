package logwriters

import (
	"errors"
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

// mark has a line say in a log that its last lines are missing, once the store takes it. It never waits.
func (ws *Writers) mark(w *tasklog.Writer) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.marks) >= maxMarks || ws.ctx.Err() != nil {
		return
	}
	ws.marks = append(ws.marks, w)
	if len(ws.marks) == 1 {
		ws.running.Go(func() { ws.markAll(w) })
	}
}

// markAll marks the ends of logs from a first one on until none is left. Once the node stops, each is tried once.
func (ws *Writers) markAll(w *tasklog.Writer) {
	for ; w != nil; w = ws.marked() {
		for again := true; again; {
			select {
			case <-ws.stopping:
				again = false
			default:
			}
			err := w.Mark(ws.ctx)
			if err == nil || errors.Is(err, tasklog.ErrTaken) || errors.Is(err, store.ErrRefused) {
				break
			}
			select {
			case <-ws.stopping:
			case <-time.After(markAgain):
			}
		}
	}
}

// marked takes the end of a mark, and returns the writer whose log is to be marked next; nil = there is none.
func (ws *Writers) marked() *tasklog.Writer {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.marks = ws.marks[1:]
	if len(ws.marks) == 0 {
		return nil
	}
	return ws.marks[0]
}
