package events

// InvalidError reports a request or a configuration that breaks a rule. Nothing was accepted.
type InvalidError struct{ Field, Problem string }

// Error names field and problem.
func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }
