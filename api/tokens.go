package api

import (
	"net/http"
	"strings"

	"taskledger/api/token"
)

// Tokens find the holder of a secret; *token.File implements it.
type Tokens interface {
	Find(secret string) *token.Token // nil = nobody
}

// Secret returns the secret of the token that a request carries. A URL with a user and a password is taken like the
// header: old clients know no other.
func Secret(r *http.Request) string {
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(secret)
}
