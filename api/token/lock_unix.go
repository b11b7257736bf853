//go:build unix && !aix && !solaris

package token

import (
	"errors"
	"os"
	"syscall"
)

// lock waits for a lock that closing the file frees.
func lock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
