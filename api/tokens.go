package api

import "taskledger/api/token"

// Tokens finds the holder of a secret; *token.File implements it. It is called concurrently.
type Tokens interface {
	Find(secret string) *token.Token // nil = nobody
}
