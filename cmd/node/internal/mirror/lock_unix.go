//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package mirror

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the lock of a file, which ends with unlock and with the process. It returns errLocked where another
// process holds it.
func lock(path string, create bool) (unlock func() error, err error) {
	mode := os.O_RDWR
	if create {
		mode |= os.O_CREATE
	}
	f, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
