package segmentation

import "fmt"

// InvalidError tells what is wrong with a plan. Field names the field as the documentation of Plan does, in lower case
// and with the place in a list, such as "alphabets[1]" or "explicit[3].upper". Problem names the limit, where there is
// one.
type InvalidError struct {
	Field   string
	Problem string
}

// Error implements error.
func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)}
}
