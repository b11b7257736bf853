package api

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"taskledger/api/problem"
)

// callers bounds what each principal asks for.
type callers struct {
	limits Limits
	mu     sync.Mutex
	of     map[string]*caller
	stream int // requests of class Stream under way, of all callers
}

type caller struct {
	limiter *rate.Limiter
	budgets budgets // its part of them
	under   int     // requests under way
	streams int     // those of them of class Stream
	last    time.Time
}

// forgetAfter bounds how long an idle principal is remembered: longer than it takes to have its whole burst again.
const forgetAfter = time.Minute

func newCallers(l Limits) *callers {
	return &callers{limits: l, of: map[string]*caller{}}
}

// Streams read journals for as long as there is something: so many of one principal, and of all, are under way at once.
const (
	maxStreams    = 2
	maxAllStreams = 8
)

// enter counts a request in, until done.
func (c *callers) enter(principal string, class Class) (is *caller, done func(), refused *problem.Problem) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	is = c.of[principal]
	if is == nil {
		for name, other := range c.of {
			if other.under == 0 && now.Sub(other.last) > forgetAfter {
				delete(c.of, name)
			}
		}
		is = &caller{
			limiter: rate.NewLimiter(rate.Limit(c.limits.PerSecond), c.limits.Burst),
			budgets: newBudgets(parts),
		}
		c.of[principal] = is
	}
	is.last = now
	streams := 0
	if class == Stream {
		streams = 1
		refused = c.oneMoreLocked(principal, is)
	}
	switch {
	case refused != nil:
	case is.under >= c.limits.InFlight:
		refused = problem.New(problem.TooMany, "%s has %d requests under way, which is the limit", principal, is.under)
	case !is.limiter.AllowN(now, 1):
		refused = problem.New(problem.TooMany, "%s asks more than %g times a second", principal, c.limits.PerSecond)
	default:
		is.under++
		is.streams += streams
		c.stream += streams
		return is, func() {
			c.mu.Lock()
			is.under--
			is.streams -= streams
			c.stream -= streams
			c.mu.Unlock()
		}, nil
	}
	refused.RetryAfter = 1
	return nil, nil, refused
}

// oneMoreLocked says why a caller may have no more streams.
func (c *callers) oneMoreLocked(principal string, is *caller) (refused *problem.Problem) {
	switch {
	case is.streams >= maxStreams:
		refused = problem.New(problem.TooMany,
			"%d streams of %s are under way, which is the limit", is.streams, principal)
	case c.stream >= maxAllStreams:
		refused = problem.New(problem.Overloaded,
			"%d streams of all callers are under way, which is the limit", c.stream)
	default:
		return nil
	}
	refused.RetryAfter = 1
	return refused
}

// streams returns the number of open streams.
func (c *callers) streams() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream
}

// streaming counts a request that is under way as a stream, until done.
func (c *callers) streaming(principal string, is *caller) (done func(), refused *problem.Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if refused := c.oneMoreLocked(principal, is); refused != nil {
		return nil, refused
	}
	is.streams++
	c.stream++
	return func() {
		c.mu.Lock()
		is.streams--
		c.stream--
		c.mu.Unlock()
	}, nil
}
