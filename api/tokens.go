package api

import "taskledger/api/token"

// Tokens find the holder of a secret; *token.File implements it.
type Tokens interface {
	Find(secret string) *token.Token // nil = nobody
}
