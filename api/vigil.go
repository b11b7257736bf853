package api

import (
	"sync"
	"time"

	"taskledger/api/problem"
	"taskledger/api/token"
)

// lookAgain is how often it is looked whether the tokens of those who wait still hold.
const lookAgain = time.Second

// vigil ends requests that wait or stream once their tokens no longer hold. One timer is for all of them; it runs while there are any.
type vigil struct {
	tokens Tokens

	mu    sync.Mutex
	calls map[*Call]func() // with what ends each
	timer *time.Timer      // nil: it does not run
}

// watch calls end once the token of a request no longer holds, until the returned function is called.
func (v *vigil) watch(c *Call, end func()) (done func()) {
	if c.by == nil {
		return func() {}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls[c] = end
	if v.timer == nil {
		v.timer = time.AfterFunc(lookAgain, v.look)
	}
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.calls, c)
	}
}

// waits is how many requests wait, those that stream aside.
func (v *vigil) waits() (n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.calls {
		if c.route.Class < Stream {
			n++
		}
	}
	return n
}

// look ends the requests whose tokens do not hold, each once.
func (v *vigil) look() {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := map[string]*token.Token{}
	for c, end := range v.calls {
		secret := Secret(c.r)
		is, looked := known[secret]
		if !looked {
			is = v.tokens.Find(secret)
			known[secret] = is
		}
		if !c.by.Same(is) && !c.lapsed.Swap(true) {
			end()
		}
	}
	if len(v.calls) == 0 {
		v.timer = nil
		return
	}
	v.timer.Reset(lookAgain)
}

// lapsed is what is told to whom a vigil has ended.
func lapsed() *problem.Problem {
	return problem.New(problem.Unauthorized, "the token was revoked or changed meanwhile")
}
