//go:build !linux

package guard

import (
	"io"
	"log/slog"
)

// Guard is none on this system.
type Guard struct{}

// Start starts nothing.
func Start(*slog.Logger) (*Guard, error) { return &Guard{}, nil }

// Close does nothing.
func (*Guard) Close() {}

// Hold does nothing.
func (*Guard) Hold(int) (release func()) { return func() {} }

// Serve does nothing.
func Serve(io.Reader) {}
