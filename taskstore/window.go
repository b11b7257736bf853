package taskstore

import (
	"context"
	"sync"
)

// remembered is how many keys of a client a store remembers.
const remembered = 64

// mayWait is how many claims may wait at a time: the rest is for those who have work.
const mayWait = remembered / 2

// window bounds the keyed calls of a client. A store remembers the keys of the last 64 that succeeded; so, from the moment when a call may
// have succeeded until its answer is known, no more than 63 others may. A claim that waits holds up nobody before its answer is missing.
type window struct {
	mu      sync.Mutex
	calls   map[*underway]struct{}
	waiting int           // claims that wait
	done    int           // calls that succeeded
	changed chan struct{} // closed when a call may enter that could not before
}

// underway is a call that was not answered yet.
type underway struct {
	in    *window
	waits bool // it is a claim that waits
	holds bool // it may have succeeded
	since int  // calls that had succeeded when it began to hold
}

func newWindow() *window {
	return &window{calls: map[*underway]struct{}{}, changed: make(chan struct{})}
}

// enter waits until another call may be made.
func (w *window) enter(ctx context.Context, holds bool) (*underway, error) {
	for {
		w.mu.Lock()
		if w.room() && (holds || w.waiting < mayWait) {
			one := &underway{in: w, waits: !holds, holds: holds, since: w.done}
			w.calls[one] = struct{}{}
			if one.waits {
				w.waiting++
			}
			w.mu.Unlock()
			return one, nil
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// room tells if one more call may succeed, with all that are under way, before the answer to the oldest one is known.
func (w *window) room() bool {
	oldest := w.done
	for one := range w.calls {
		if one.holds {
			oldest = min(oldest, one.since)
		}
	}
	return len(w.calls)+w.done-oldest < remembered
}

// hold says that the call may have succeeded, and that its answer was lost.
func (u *underway) hold() {
	u.in.mu.Lock()
	defer u.in.mu.Unlock()
	if !u.holds {
		u.holds, u.since = true, u.in.done
	}
}

// leave says that the answer is known.
func (u *underway) leave(succeeded bool) {
	u.in.mu.Lock()
	defer u.in.mu.Unlock()
	delete(u.in.calls, u)
	if u.waits {
		u.in.waiting--
	}
	if succeeded {
		u.in.done++
	}
	close(u.in.changed)
	u.in.changed = make(chan struct{})
}
