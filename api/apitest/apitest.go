// Package apitest holds the fixture that the tests of HTTP fronts have in common: tokens by their secrets, requests
// with them, and answers that have to be as they should.
package apitest

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"

	"taskledger/api/token"
)

// Secrets holds known tokens by their secrets. It implements api.Tokens.
type Secrets map[string]*token.Token

// Find implements api.Tokens.
func (s Secrets) Find(secret string) *token.Token { return s[secret] }

// Everybody returns one token of each role, that of a tenant, whose ids begin with "t1.", and that of an operator of
// the behavior sleep alone; and more of them.
func Everybody(more Secrets) Secrets {
	all := Secrets{
		"viewer":    {Name: "vera", Role: token.Viewer},
		"submitter": {Name: "sam", Role: token.Submitter},
		"operator":  {Name: "olga", Role: token.Operator},
		"admin":     {Name: "ada", Role: token.Admin},
		"worker":    {Name: "wim", Role: token.Worker},
		"tenant":    {Name: "tina", Role: token.Operator, Prefix: "t1."},
		"sleeper":   {Name: "sue", Role: token.Operator, Behaviors: []string{"sleep"}},
	}
	maps.Copy(all, more)
	return all
}

// Ask asks a front with a token; "" = without one. A body is sent as JSON; header is name and value by turns.
func Ask(front http.Handler, secret, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "localhost"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	front.ServeHTTP(w, r)
	return w
}

// Failer fails a test.
type Failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// Want fails the test unless an answer has a status and a part. It returns the answer.
func Want(t Failer, a *httptest.ResponseRecorder, status int, part string) *httptest.ResponseRecorder {
	t.Helper()
	if a.Code != status || !strings.Contains(a.Body.String(), part) {
		t.Errorf("status %d, want %d and %q: %.500s", a.Code, status, part, a.Body)
	}
	return a
}
