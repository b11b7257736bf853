package builtin

import "time"

// Internals under test by themselves.
var (
	Public           = public
	RetryAfterHeader = retryAfter
	FirstJSON        = firstJSON
	LastJSON         = lastJSON
)

// DrainTime bounds how long output is read after the program has ended.
const DrainTime = drainTime

// ExcerptBytes bounds the bytes that are kept of a text.
const ExcerptBytes = excerptBytes

// SetAfter gives a Getter a time of the test's own.
func (g *Getter) SetAfter(after func(d time.Duration, f func()) (stop func() bool)) { g.after = after }
