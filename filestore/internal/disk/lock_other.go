//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package disk

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrInUse reports that a directory is in use, by another process or by this one.
var ErrInUse = errors.New("directory is in use")

// Lock fails: without a lock that ends with its process nobody can tell that a directory is free.
func Lock(dir string) (unlock func() error, err error) {
	return nil, fmt.Errorf("lock %s: %w", dir, errors.ErrUnsupported)
}

// Full reports whether an error says that there is no room on the disk.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) }
