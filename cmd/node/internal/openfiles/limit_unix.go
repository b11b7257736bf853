//go:build unix

package openfiles

import (
	"fmt"
	"syscall"
)

// Limit returns the number of files that the process may open. Go has raised it to the hard limit; programs that the
// node starts have the one of before.
func Limit() (int, error) {
	var is syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &is); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return int(min(uint64(is.Cur), unlimited)), nil //nolint:unconvert // on some systems it is an int64
}
