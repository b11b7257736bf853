package builtin

import (
	"fmt"
	"time"

	"taskledger/store"
)

// Duration is a time.Duration that travels as text, such as "1m30s".
type Duration time.Duration

// String returns the duration in the form that time.ParseDuration reads.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns the duration in the form of String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the form that time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: want text such as 1m30s", text)
	}
	*d = Duration(v)
	return nil
}

const maxTimeout = 10 * 365 * 24 * time.Hour

// checkTimeout accepts 0, which means the default, to ten years.
func checkTimeout(d Duration) error {
	if timeout := time.Duration(d); timeout < 0 || timeout > maxTimeout {
		return &store.InvalidError{Field: "timeout", Problem: fmt.Sprintf("%s, want 0 to %s", timeout, maxTimeout)}
	}
	return nil
}
