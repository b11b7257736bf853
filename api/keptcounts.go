package api

import (
	"strings"
	"sync"
	"time"

	"taskledger/api/token"
	"taskledger/task"
)

const (
	// slowCount is the time that makes a count slow: it is kept for keepCount, so that pages that are refreshed do not
	// count all the while.
	slowCount = 500 * time.Millisecond
	keepCount = 5 * time.Second
)

// keptCounts holds counts that were slow, by what a token is for and the behavior that was asked for, "" = all. Its
// zero value holds none.
type keptCounts struct {
	mu sync.Mutex
	of map[string]keptCount
}

// keptCount holds the counts of the tasks that a token is for.
type keptCount struct {
	counts  task.Counts
	partial bool
	until   time.Time
}

// get returns what was counted lately for tokens that are for the same tasks.
func (k *keptCounts) get(by *token.Token, behavior string) (is keptCount, found bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	is, found = k.of[tasksOf(by, behavior)]
	return is, found && time.Now().Before(is.until)
}

// put keeps counts whose counting has begun at some time, if that was slow, and drops old ones.
func (k *keptCounts) put(by *token.Token, behavior string, counts task.Counts, partial bool, begun time.Time) {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	for of, is := range k.of {
		if !now.Before(is.until) {
			delete(k.of, of)
		}
	}
	if now.Sub(begun) < slowCount {
		return
	}
	if k.of == nil {
		k.of = map[string]keptCount{}
	}
	k.of[tasksOf(by, behavior)] = keptCount{counts, partial, now.Add(keepCount)}
}

// tasksOf names the tasks of a behavior that a token is for.
func tasksOf(by *token.Token, behavior string) string {
	return by.Prefix + "\n" + behavior + "\n" + strings.Join(by.Behaviors, "\n")
}
