package taskstore

import (
	"context"
	"runtime"
	"sync"
	"weak"
)

const (
	// atOnce bounds the calls of a client that are under way, counted from the oldest update: a store remembers as
	// many keys.
	atOnce = 64
	// claimsAtOnce of them may be claims, and waitsAtOnce of these may wait for items.
	claimsAtOnce = 32
	waitsAtOnce  = 24
)

// clientOf is a client of a store.
type clientOf struct {
	store  string
	client int64
}

// windows maps each clientOf of this process to its window: a store that is opened twice has one window, which goes
// with the last of its stores.
var windows sync.Map // of weak.Pointer[window]

func windowOf(c clientOf) *window {
	for {
		w := &window{}
		is := weak.Make(w)
		before, there := windows.LoadOrStore(c, is)
		if there {
			if is = before.(weak.Pointer[window]); is.Value() != nil {
				return is.Value()
			}
			windows.CompareAndDelete(c, is)
			continue
		}
		runtime.AddCleanup(w, func(is weak.Pointer[window]) { windows.CompareAndDelete(c, is) }, is)
		return w
	}
}

// window counts the calls of a client, so that an update may be repeated as long as it is under way: the store has
// not forgotten its key, since at most atOnce-1 other calls can have succeeded after it. A claim does not hold up
// others, as it may wait for a minute: it is told instead when its key may be forgotten.
type window struct {
	mu      sync.Mutex
	counted uint64         // calls that have ended
	updates map[uint64]int // how many are under way, by what was counted when they began
	under   int            // updates that are under way; like claims, each may succeed after the oldest of them
	claims  int            // that are under way
	waits   int            // those of them that may wait
	changed chan struct{}  // closed when a call that waits may have its turn; nil while none waits
}

// begin waits for the turn of a call, and returns what was counted before it.
func (w *window) begin(ctx context.Context, claim bool) (uint64, error) {
	for {
		w.mu.Lock()
		if w.admits(claim) {
			defer w.mu.Unlock()
			n := w.counted
			if claim {
				w.claims++
				return n, nil
			}
			if w.updates == nil {
				w.updates = map[uint64]int{}
			}
			w.updates[n]++
			w.under++
			return n, nil
		}
		if w.changed == nil {
			w.changed = make(chan struct{})
		}
		changed := w.changed
		w.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (w *window) admits(claim bool) bool {
	if claim && w.claims >= claimsAtOnce {
		return false
	}
	oldest := w.counted
	for n := range w.updates {
		oldest = min(oldest, n)
	}
	return w.counted-oldest+uint64(w.under+w.claims) < atOnce
}

// again counts a call anew that was refused: its key is not used yet, so nobody has to wait for it. It returns what
// was counted before it.
func (w *window) again(n uint64, claim bool) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !claim {
		w.forgetLocked(n)
		w.updates[w.counted]++
		w.changedLocked()
	}
	return w.counted
}

// forgetLocked takes an update out of those under way.
func (w *window) forgetLocked(n uint64) {
	if w.updates[n]--; w.updates[n] == 0 {
		delete(w.updates, n)
	}
}

// changedLocked lets those look again that wait for their turn.
func (w *window) changedLocked() {
	if w.changed != nil {
		close(w.changed)
		w.changed = nil
	}
}

// wait takes one of the places of claims that wait, if there is one.
func (w *window) wait() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waits == waitsAtOnce {
		return false
	}
	w.waits++
	return true
}

// waited gives the place back.
func (w *window) waited() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits--
}

// end ends a call.
func (w *window) end(n uint64, claim bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if claim {
		w.claims--
	} else {
		w.under--
		w.forgetLocked(n)
	}
	w.counted++
	w.changedLocked()
}

// remembered says that the store has not forgotten the key of a claim that began when n were counted.
func (w *window) remembered(n uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counted-n+uint64(w.under+w.claims) <= atOnce
}
