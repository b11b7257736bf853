package api

import (
	"sync"
	"time"

	"taskledger/api/problem"
	"taskledger/api/token"
)

// refreshTokens sets how often the tokens of waiting requests are read again.
const refreshTokens = time.Second

// tokenWatcher ends requests that wait or stream once their tokens no longer hold. One timer serves all of them; it
// runs while there are any.
type tokenWatcher struct {
	tokens Tokens

	mu      sync.Mutex
	watched map[*watched]bool
	timer   *time.Timer // nil: it does not run
}

// watched holds a request that ends with its token.
type watched struct {
	by     *token.Token
	secret string
	waits  bool // it does not stream
	ended  bool
	end    func()
}

func newTokenWatcher(tokens Tokens) *tokenWatcher {
	return &tokenWatcher{tokens: tokens, watched: map[*watched]bool{}}
}

// watch calls end of a request once its token no longer holds, until the returned function is called.
func (t *tokenWatcher) watch(w *watched) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watched[w] = true
	if t.timer == nil {
		t.timer = time.AfterFunc(refreshTokens, t.refresh)
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.watched, w)
	}
}

// waits counts the requests that wait, those that stream aside.
func (t *tokenWatcher) waits() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.watched {
		if w.waits {
			n++
		}
	}
	return n
}

// refresh ends the requests whose tokens do not hold, each once.
func (t *tokenWatcher) refresh() {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[string]*token.Token{}
	for w := range t.watched {
		is, known := found[w.secret]
		if !known {
			is = t.tokens.Find(w.secret)
			found[w.secret] = is
		}
		if !w.ended && !w.by.Same(is) {
			w.ended = true
			w.end()
		}
	}
	if len(t.watched) == 0 {
		t.timer = nil
		return
	}
	t.timer.Reset(refreshTokens)
}

// lapsed returns the problem of a request whose token no longer holds.
func lapsed() *problem.Problem {
	return problem.New(problem.Unauthorized, "the token was revoked or changed meanwhile")
}
