//go:build !linux

package testkit

import "time"

// processorTime returns how long f took: what the thread used of it is known on Linux alone.
func processorTime(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}
