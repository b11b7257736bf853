package bench_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// apart calls start, which starts a child, so that the child has one half of the processors, and keeps the other half
// for this process until whole is called. Where there is but one, or the system refuses, both have all: mine and its
// are 0.
func apart(start func() error) (mine, its int, whole func() error, err error) {
	var all, first, second unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil || all.Count() < 2 {
		return 0, 0, func() error { return nil }, start()
	}
	for cpu, n := 0, 0; n < all.Count(); cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		if n++; n <= all.Count()/2 {
			first.Set(cpu)
		} else {
			second.Set(cpu)
		}
	}
	if err := startOn(&second, &all, start); err != nil {
		return 0, 0, nil, err
	}
	procs := runtime.GOMAXPROCS(first.Count())
	whole = func() error {
		runtime.GOMAXPROCS(procs)
		return moveThreads(&all)
	}
	return first.Count(), second.Count(), whole, moveThreads(&first)
}

// startOn starts a child on some processors: it inherits those of the thread that starts it.
func startOn(its, mine *unix.CPUSet, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.SchedSetaffinity(0, its); err != nil {
		return fmt.Errorf("choose the processors of a child: %w", err)
	}
	failed := start()
	if err := unix.SchedSetaffinity(0, mine); err != nil {
		return fmt.Errorf("choose processors: %w", err)
	}
	return failed
}

// moveThreads moves every thread of this process to some processors; those to come inherit them. A thread that was made
// by one not moved yet is found in the second round.
func moveThreads(to *unix.CPUSet) error {
	for range 2 {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("list threads: %w", err)
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			if err := unix.SchedSetaffinity(id, to); err != nil && err != unix.ESRCH { // it may have ended
				return fmt.Errorf("choose the processors of a thread: %w", err)
			}
		}
	}
	return nil
}
