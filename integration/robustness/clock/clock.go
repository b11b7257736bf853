// Package clock is the time of a run: one clock for all processes of a machine, that no fault touches.
package clock

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// Now returns the nanoseconds of CLOCK_MONOTONIC. They go on while a process is stopped, and compare between processes.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every Linux has it
	}
	return t.Nano()
}

// Sleep lets a fault last; it ends early with ctx.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Since is the time of a run that began then.
func Since(begin int64) int64 { return Now() - begin }
