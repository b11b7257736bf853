//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package disk

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock takes the lock of a directory, which ends with unlock and with the process. It wraps ErrInUse where somebody
// holds it.
func Lock(dir string) (unlock func() error, err error) { return lock(dir, os.O_CREATE) }

// LockThere is Lock that makes nothing: it wraps fs.ErrNotExist where nobody has ever taken the lock.
func LockThere(dir string) (unlock func() error, err error) { return lock(dir, 0) }

func lock(dir string, flag int) (unlock func() error, err error) {
	f, err := os.OpenFile(lockPath(dir), os.O_RDWR|flag, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("%s: %w", dir, ErrInUse)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// lockShared locks a file with others that do so.
func lockShared(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}

// MayWrite returns why this process may not make files in a directory, or not write to its lock; nil = it may.
func MayWrite(dir string) error {
	const enter, write = 1, 2
	if err := syscall.Access(dir, write|enter); err != nil {
		return &os.PathError{Op: "write", Path: dir, Err: err}
	}
	if err := syscall.Access(lockPath(dir), write); err != nil && !errors.Is(err, syscall.ENOENT) {
		return &os.PathError{Op: "write", Path: lockPath(dir), Err: err}
	}
	return nil
}

// noRoom reports whether an error says that there is no room on the disk.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
