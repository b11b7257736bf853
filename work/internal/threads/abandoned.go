package threads

import (
	"maps"
	"slices"
	"sync"
)

// Abandoned counts the goroutines of iterators that were left behind and have not returned since. The zero value is
// ready to use, and its methods may be called concurrently.
type Abandoned struct {
	mu    sync.Mutex
	names map[any]string
}

// Names returns the names of the runs whose iterators were left behind, sorted.
func (a *Abandoned) Names() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Values(a.names))
}

// add counts an iterator until done is closed.
func (a *Abandoned) add(iterator any, name string, done <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-done: // it has called remove, or will
		return
	default:
	}
	if a.names == nil {
		a.names = map[any]string{}
	}
	a.names[iterator] = name
}

// remove ends the count of an iterator, after its done is closed.
func (a *Abandoned) remove(iterator any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.names, iterator)
}
