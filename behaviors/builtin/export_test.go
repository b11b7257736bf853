package builtin

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
