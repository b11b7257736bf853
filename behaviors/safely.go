package behaviors

import (
	"fmt"
	"runtime/debug"

	"taskledger/events"
)

// panicValueBytes bounds the text of a panic's value that stands before its stack.
const panicValueBytes = 16 << 10

// safely calls fn, which is or contains user code, and makes an error of its panic.
func safely[T any](doing, what string, fn func() (T, error)) (v T, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			// The text of an error is cut at its end, and the stack is more than the whole of a long value.
			value := events.Cut(fmt.Sprint(reason), panicValueBytes)
			err = fmt.Errorf("%s%s: panic: %s\n%s", doing, what, value, debug.Stack())
		}
	}()
	return fn()
}
