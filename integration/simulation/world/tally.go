package world

import (
	"fmt"
	"sync"
)

// hit is a way in which a fault bites.
type hit string

// The hits.
const (
	held        hit = "requests held"
	refused     hit = "requests failed"
	slowed      hit = "requests slowed"
	requestLost hit = "requests lost"
	replyLost   hit = "replies lost"
	copied      hit = "writes copied"
	late        hit = "writes late"
	noSpace     hit = "writes refused for want of space"
	watchHeld   hit = "watch responses held"
	muffled     hit = "messages lost"
	doubled     hit = "messages doubled"
	delayed     hit = "messages late"
	misread     hit = "looks at a wrong clock"
	alarmed     hit = "alarms for a wrong clock"
)

// tally counts hits. Its methods may be called concurrently.
type tally struct {
	mu sync.Mutex
	n  map[hit]int
}

func newTally() *tally { return &tally{n: map[hit]int{}} }

func (t *tally) add(h hit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n[h]++
}

func (t *tally) count(h hit) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n[h]
}

// since returns a function that says how often h was hit since; "" = never.
func since(h hit, tallies ...*tally) (proof func() string) {
	sum := func() (n int) {
		for _, t := range tallies {
			n += t.count(h)
		}
		return n
	}
	before := sum()
	return func() string {
		if n := sum() - before; n > 0 {
			return fmt.Sprintf("%d %s", n, h)
		}
		return ""
	}
}
