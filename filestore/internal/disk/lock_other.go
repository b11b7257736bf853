//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package disk

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock fails: without a lock that ends with its process nobody can tell that a directory is free.
func Lock(dir string) (unlock func() error, err error) {
	return nil, fmt.Errorf("lock %s: %w", dir, errors.ErrUnsupported)
}

// LockThere fails as Lock does.
func LockThere(dir string) (unlock func() error, err error) { return Lock(dir) }

func lockShared(*os.File) error { return errors.ErrUnsupported }

// MayWrite tells nothing.
func MayWrite(string) error { return nil }

// noRoom reports whether an error says that there is no room on the disk.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) }
