package world

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"taskledger/integration/robustness/history"
	"taskledger/work/feed/memfeed"
)

// changeLogs hold the changes for streams, outside of all processes. The zero value has none. Its methods may be called
// concurrently.
type changeLogs struct {
	mu  sync.Mutex
	all map[string]*changeLog // by the task that has the stream
}

// changeLog has the changes of one task.
type changeLog struct {
	mu       sync.Mutex
	is       history.Feed
	messages *memfeed.Feed // nil = its changes are fetched
}

// ackWait is the time after which a message that is not acknowledged comes again: less than that after which an attempt
// tells that it is in progress.
const ackWait = 3 * time.Second

// Make returns the feed of a task, which it makes if there is none.
func (f *changeLogs) Make(task string, pushed bool) *changeLog {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*changeLog{}
	}
	one := f.all[task]
	if one == nil {
		one = &changeLog{is: history.Feed{Task: task, Pushed: pushed}}
		if pushed {
			one.messages = memfeed.New(memfeed.Config{AckWait: ackWait})
		}
		f.all[task] = one
	}
	return one
}

// History returns what was published, by task.
func (f *changeLogs) History() (all []history.Feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.all {
		one.mu.Lock()
		all = append(all, one.is)
		one.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b history.Feed) int { return cmp.Compare(a.Task, b.Task) })
	return all
}

// Publish adds changes at a time of the history: at each place one of each key there, which a message of a pushed feed has
// together.
func (f *changeLog) Publish(at int64, places [][]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, keys := range places {
		f.is.Keys = append(f.is.Keys, keys)
		f.is.Published = append(f.is.Published, at)
		if f.messages != nil {
			f.messages.Publish("changes", nil)
		}
	}
}

// Disturb has messages that wait to be acknowledged come again at once, the last ones first, and others get lost on their
// way.
func (f *changeLog) Disturb(lost int) {
	if f.messages == nil {
		return
	}
	places := f.messages.Pending()
	slices.Reverse(places)
	f.messages.Redeliver(places...)
	f.messages.Lose(lost)
}

// keys returns the keys of the changes at a place; false = there is none.
func (f *changeLog) keys(place uint64) (keys []string, there bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if place == 0 || place > uint64(len(f.is.Keys)) {
		return nil, false
	}
	return f.is.Keys[place-1], true
}
