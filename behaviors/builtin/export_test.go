package builtin

// Internals under test by themselves.
var (
	Public           = public
	RetryAfterHeader = retryAfter
	FirstJSON        = firstJSON
	OpenFailure      = openFailure
	LastJSON         = lastJSON
)

// ExcerptBytes bounds the bytes that are kept of a text.
const ExcerptBytes = excerptBytes
