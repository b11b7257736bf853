// Package sessions keeps who has logged in to the dashboard of one node, in memory: a session ends by logout, after
// some hours in which it was not used, with its token, and with the process.
package sessions

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"taskledger/api/token"
)

// Bounds of sessions and links. Where there is no room for one, the oldest of its principal goes; where the principal
// has none, the oldest of the principal that has most.
const (
	Idle         = 8 * time.Hour // ends a session that was not used
	LinkFor      = 10 * time.Minute
	maxSessions  = 10_000
	maxOfOne     = 100
	maxLinks     = 1000
	maxLinksEach = 10
)

// Tokens finds the holder of a secret; api.Tokens implements it.
type Tokens interface {
	Find(secret string) *token.Token // nil = nobody
}

// Sessions keeps sessions, and links by which one begins. Its methods may be called concurrently.
type Sessions struct {
	tokens Tokens
	now    func() time.Time

	mu       sync.Mutex
	sessions table
	links    table
}

// New returns Sessions without a session. tokens finds the holder of a secret; now tells the time, nil = time.Now.
func New(tokens Tokens, now func() time.Time) *Sessions {
	if now == nil {
		now = time.Now
	}
	return &Sessions{
		tokens:   tokens,
		now:      now,
		sessions: table{most: maxSessions, mostOfOne: maxOfOne, lasts: Idle},
		links:    table{most: maxLinks, mostOfOne: maxLinksEach, lasts: LinkFor},
	}
}

// Begin begins a session with the secret of a token, and returns the value of its cookie; "" = nobody has the secret.
func (s *Sessions) Begin(secret string) (cookie string) { return s.add(&s.sessions, secret) }

// Secret returns the secret with which the session of a cookie began; "" = it has ended, or never was. The call
// counts as a use of the session. One whose token was revoked ends, so that it does not come back with the token.
func (s *Sessions) Secret(cookie string) string {
	s.mu.Lock()
	secret := s.sessions.use(cookie, s.now())
	s.mu.Unlock()
	return s.held(cookie, secret)
}

// Look returns the same as Secret, and ends the same session, but does not count as a use of it.
func (s *Sessions) Look(cookie string) (secret string) {
	s.mu.Lock()
	if e := s.sessions.find(cookie, s.now()); e != nil {
		secret = e.secret
	}
	s.mu.Unlock()
	return s.held(cookie, secret)
}

// held returns the secret of a session. It ends the session where nobody has the secret any more.
func (s *Sessions) held(cookie, secret string) string {
	if secret != "" && s.tokens.Find(secret) == nil {
		s.End(cookie)
		return ""
	}
	return secret
}

// End ends the session of a cookie, if there is one.
func (s *Sessions) End(cookie string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions.take(cookie, s.now())
}

// Link returns a code by which one session begins within LinkFor, with the secret of a token; "" = nobody has the
// secret.
func (s *Sessions) Link(secret string) (code string) { return s.add(&s.links, secret) }

// Spend begins a session by a link, once, and returns the value of its cookie; "" = the link is spent, too old, or
// never was, or its token is revoked.
func (s *Sessions) Spend(code string) (cookie string) {
	s.mu.Lock()
	secret := s.links.take(code, s.now())
	s.mu.Unlock()
	if secret == "" {
		return ""
	}
	return s.Begin(secret)
}

// Holds reports whether a link can still be spent.
func (s *Sessions) Holds(code string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.links.find(code, s.now()) != nil
}

// Len counts the sessions.
func (s *Sessions) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions.all)
}

func (s *Sessions) add(to *table, secret string) (code string) {
	by := s.tokens.Find(secret)
	if secret == "" || by == nil {
		return ""
	}
	code = rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	to.add(code, entry{principal: Principal(by), secret: secret}, s.now())
	return code
}

// Principal returns a text that is equal for tokens that are the same by token.Same: neither a name nor a secret
// alone says whose a session is.
func Principal(t *token.Token) string {
	return fmt.Sprintf("%q %d %q %q", t.Name, t.Role, t.Prefix, t.Behaviors)
}

// digest stands for a code in a table: memory that leaks shows no cookie.
type digest [sha256.Size]byte

// table holds entries by their codes, within bounds.
type table struct {
	most      int
	mostOfOne int
	lasts     time.Duration // an entry that is not used for so long has ended
	all       map[digest]*entry
	of        map[string]int // counts the entries of each principal
}

type entry struct {
	principal string
	secret    string
	used      time.Time
}

func (t *table) add(code string, e entry, now time.Time) {
	if t.all == nil {
		t.all, t.of = map[digest]*entry{}, map[string]int{}
	}
	if t.of[e.principal] >= t.mostOfOne || len(t.all) >= t.most {
		t.makeRoom(e.principal, now)
	}
	e.used = now
	t.all[sha256.Sum256([]byte(code))] = &e
	t.of[e.principal]++
}

// makeRoom removes what has ended, and if that is not enough the oldest entry of the principal, or of the one that has
// most.
func (t *table) makeRoom(principal string, now time.Time) {
	for code, e := range t.all {
		if now.Sub(e.used) >= t.lasts {
			t.remove(code)
		}
	}
	if t.of[principal] < t.mostOfOne && len(t.all) < t.most {
		return
	}
	if t.of[principal] == 0 {
		for other, n := range t.of {
			if n > t.of[principal] {
				principal = other
			}
		}
	}
	var oldest digest
	var found *entry
	for code, e := range t.all {
		if e.principal == principal && (found == nil || e.used.Before(found.used)) {
			oldest, found = code, e
		}
	}
	t.remove(oldest)
}

func (t *table) remove(code digest) {
	e := t.all[code]
	if e == nil {
		return
	}
	delete(t.all, code)
	if t.of[e.principal]--; t.of[e.principal] == 0 {
		delete(t.of, e.principal)
	}
}

// find returns an entry that has not ended, nil for none.
func (t *table) find(code string, now time.Time) *entry {
	e := t.all[sha256.Sum256([]byte(code))]
	if e == nil || now.Sub(e.used) >= t.lasts {
		return nil
	}
	return e
}

// use returns the secret of an entry, which lasts longer by that.
func (t *table) use(code string, now time.Time) (secret string) {
	e := t.find(code, now)
	if e == nil {
		return ""
	}
	e.used = now
	return e.secret
}

// take returns the secret of an entry, and removes it.
func (t *table) take(code string, now time.Time) (secret string) {
	if e := t.find(code, now); e != nil {
		secret = e.secret
	}
	t.remove(sha256.Sum256([]byte(code)))
	return secret
}
