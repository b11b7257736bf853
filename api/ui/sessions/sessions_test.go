package sessions_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"taskledger/api/token"
	"taskledger/api/ui/sessions"
)

// tokens has a token of each secret that begins with its name and a dash, as long as it is not revoked.
type tokens struct{ revoked map[string]bool }

func (t tokens) Find(secret string) *token.Token {
	name, _, found := strings.Cut(secret, "-")
	if !found || t.revoked[secret] {
		return nil
	}
	return &token.Token{Name: name}
}

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func begin() (*sessions.Sessions, *clock, tokens) {
	c := &clock{time.Unix(1e9, 0)}
	all := tokens{map[string]bool{}}
	return sessions.New(all, c.now), c, all
}

func TestSession_LastsWhileItIsUsedAndEndsByLogout(t *testing.T) {
	s, c, _ := begin()
	if s.Begin("nobody") != "" || s.Begin("") != "" {
		t.Error("a session of nobody")
	}
	cookie := s.Begin("a-1")
	for range 5 {
		c.at = c.at.Add(sessions.Idle - time.Second)
		if s.Secret(cookie) != "a-1" {
			t.Fatal("it has ended though it was used")
		}
	}
	c.at = c.at.Add(sessions.Idle)
	if s.Secret(cookie) != "" {
		t.Error("it has not ended though nobody used it")
	}
	cookie = s.Begin("a-1")
	s.End(cookie)
	s.End("forged")
	if s.Secret(cookie) != "" || s.Secret("forged") != "" || s.Secret("") != "" {
		t.Error("it has not ended by logout")
	}
}

func TestSession_OfARevokedTokenHasEndedThoughTheTokenComesBack(t *testing.T) {
	s, _, all := begin()
	for name, ask := range map[string]func(cookie string) string{"used": s.Secret, "looked at": s.Look} {
		cookie := s.Begin("a-1")
		if ask(cookie) != "a-1" {
			t.Errorf("%s: it has ended before its token", name)
		}
		all.revoked["a-1"] = true
		if ask(cookie) != "" || s.Len() != 0 {
			t.Errorf("%s: it has not ended with its token", name)
		}
		delete(all.revoked, "a-1")
		if s.Secret(cookie) != "" || s.Look(cookie) != "" {
			t.Errorf("%s: it has come back", name)
		}
	}
}

func TestSession_IsNotUsedByALook(t *testing.T) {
	s, c, _ := begin()
	cookie := s.Begin("a-1")
	c.at = c.at.Add(sessions.Idle - time.Second)
	if s.Look(cookie) != "a-1" {
		t.Error("it has ended too early")
	}
	c.at = c.at.Add(time.Second)
	if s.Look(cookie) != "" || s.Secret(cookie) != "" {
		t.Error("a look has made it last longer")
	}
}

// A link in a chat is opened by previews: only who spends it has it, and once.
func TestLink_BeginsOneSession(t *testing.T) {
	s, c, all := begin()
	code := s.Link("a-1")
	for range 2 {
		if !s.Holds(code) {
			t.Error("looking at a link spends it")
		}
	}
	if s.Holds("forged") || s.Holds("") {
		t.Error("there is a link that nobody made")
	}
	cookie := s.Spend(code)
	if s.Secret(cookie) != "a-1" || s.Spend(code) != "" || s.Holds(code) {
		t.Error("a link was not spent once")
	}
	late := s.Link("a-1")
	c.at = c.at.Add(sessions.LinkFor)
	if s.Holds(late) || s.Spend(late) != "" {
		t.Error("a link was spent too late")
	}
	revoked := s.Link("a-2")
	all.revoked["a-2"] = true
	if s.Spend(revoked) != "" {
		t.Error("a link was spent after its token had been revoked")
	}
}

func TestSessions_OfOnePrincipalPushOutItsOldest(t *testing.T) {
	s, c, _ := begin()
	other := s.Begin("b-1")
	var cookies []string
	for range 101 {
		c.at = c.at.Add(time.Second)
		cookies = append(cookies, s.Begin("a-1"))
	}
	if s.Secret(cookies[0]) != "" || s.Secret(cookies[1]) == "" || s.Secret(cookies[100]) == "" || s.Secret(other) == "" {
		t.Error("another one than the oldest of the principal has gone")
	}
}

func TestSessions_AreBoundedWhoeverBeginsThem(t *testing.T) {
	s, c, _ := begin()
	first := s.Begin("a0-1")
	for i := range 12_000 {
		c.at = c.at.Add(time.Millisecond)
		s.Begin(fmt.Sprintf("a%d-1", i%110))
	}
	if n := s.Len(); n > 10_000 {
		t.Errorf("%d sessions", n)
	}
	c.at = c.at.Add(time.Millisecond)
	if s.Secret(s.Begin("new-1")) == "" || s.Secret(first) != "" {
		t.Error("who has none yet gets none")
	}
	if s.Len() > 10_000 {
		t.Errorf("%d sessions", s.Len())
	}
	c.at = c.at.Add(sessions.Idle)
	if s.Begin("new-1"); s.Len() != 1 {
		t.Errorf("%d sessions, though all but one have ended", s.Len())
	}
}

func TestPrincipal_IsTheSameOfTokensThatAreTheSame(t *testing.T) {
	all := []*token.Token{
		{Name: "a"}, {Name: "b"}, {Name: "a", Role: token.Admin}, {Name: "a", Prefix: "x"}, {Name: "a", Behaviors: []string{"x"}},
		{Name: "a", Behaviors: []string{"x", "y"}}, {Name: "a", Behaviors: []string{}},
	}
	for _, x := range all {
		for _, y := range all {
			if same := sessions.Principal(x) == sessions.Principal(y); same != x.Same(y) {
				t.Errorf("%+v and %+v: %t", x, y, same)
			}
		}
	}
}
