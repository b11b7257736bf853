package threads

import "sync"

// Later takes the verdicts of items that a run has set aside. It may be used concurrently.
type Later[I any] struct {
	mu   sync.Mutex
	all  []ending[I]
	bell chan struct{} // rings when there are some
}

// NewLater returns a Later for one run.
func NewLater[I any]() *Later[I] {
	return &Later[I]{bell: make(chan struct{}, 1)}
}

// Tell tells the verdict of an item whose last one was Later, or is about to be. It does not wait for the run, which
// may be over.
func (l *Later[I]) Tell(it *Item[I], v Verdict) {
	l.mu.Lock()
	l.all = append(l.all, ending[I]{it, v})
	l.mu.Unlock()
	l.Wake()
}

// Wake has the run ask again for room. It does not wait for the run.
func (l *Later[I]) Wake() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// take returns the verdicts that were told since it was called last.
func (l *Later[I]) take() []ending[I] {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all
	l.all = nil
	return all
}

// awaiting holds the items that are set aside, each with nil, and the verdicts that were told too early.
type awaiting[I any] map[*Item[I]]*Verdict

// set sets an item aside, unless its verdict was told already, which it returns then.
func (a awaiting[I]) set(it *Item[I]) (early Verdict, told bool) {
	if v := a[it]; v != nil {
		delete(a, it)
		return *v, true
	}
	a[it] = nil
	return Verdict{}, false
}

// told takes a verdict, and reports whether the item was set aside.
func (a awaiting[I]) told(e ending[I]) bool {
	if _, aside := a[e.item]; aside {
		delete(a, e.item)
		return true
	}
	a[e.item] = &e.verdict
	return false
}
