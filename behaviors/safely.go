package behaviors

import (
	"fmt"
	"runtime/debug"
)

// safely calls fn, which is or contains user code, and makes an error of its panic.
func safely[T any](doing, what string, fn func() (T, error)) (v T, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%s%s: panic: %v\n%s", doing, what, reason, debug.Stack())
		}
	}()
	return fn()
}
