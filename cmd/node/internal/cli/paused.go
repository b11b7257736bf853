package cli

// pausedError reports that an interrupt or --timeout ended a command before all was done, and how it is taken up again.
type pausedError struct {
	text  string
	cause error
}

// Error says why it ended and how to go on.
func (e *pausedError) Error() string { return e.cause.Error() + ": " + e.text }

// Unwrap returns why it ended.
func (e *pausedError) Unwrap() error { return e.cause }
