//go:build !linux

package cluster

import (
	"errors"
	"fmt"
	"runtime"
)

// Namespace exists on Linux alone.
type Namespace struct{}

// NewNamespace fails.
func NewNamespace() (*Namespace, error) {
	return nil, fmt.Errorf("network namespaces on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Do runs f.
func (n *Namespace) Do(f func() error) error { return f() }

// Lose runs f and loses nothing.
func (n *Namespace) Lose(_, _ []uint16, f func()) (LostPackets, error) {
	f()
	return LostPackets{}, errors.ErrUnsupported
}

// Close does nothing.
func (n *Namespace) Close() error { return nil }
