package api

import (
	"fmt"

	"taskledger/store"
)

// invalid returns the error of a request whose field, parameter or header is wrong.
func invalid(field, format string, args ...any) error {
	return &store.InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
