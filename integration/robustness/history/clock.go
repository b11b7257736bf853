package history

import "golang.org/x/sys/unix"

// Now returns the time by which runs are recorded: the nanoseconds of CLOCK_MONOTONIC. They go on while a process is
// stopped, and compare between the processes of a machine.
func Now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every Linux has it
	}
	return t.Nano()
}

// Since returns the time of a run that began then.
func Since(begin int64) int64 { return Now() - begin }
