package httpd

import (
	"sync"
	"time"
)

// readyFor bounds the age of an answer about readiness. Callers need no token, and asking again within it costs no new
// look.
const readyFor = 100 * time.Millisecond

// lately returns what f said last, for readyFor.
func lately(f func() string) func() string {
	var mu sync.Mutex
	var at time.Time
	var said string
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); at.IsZero() || now.Sub(at) >= readyFor {
			said, at = f(), now
		}
		return said
	}
}
