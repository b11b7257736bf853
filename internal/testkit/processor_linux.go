package testkit

import (
	"runtime"
	"syscall"
	"time"
)

// processorTime returns how long the calling goroutine used a processor in f, however many others wanted one.
func processorTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := used()
	f()
	return used() - before
}

// used is the processor time of this thread, without that of the kernel: what a page of memory costs there, or an
// interrupt, is not the decoder's doing.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano())
}
