//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package mirror

import (
	"errors"
	"os"
)

// lock makes the file alone: without a lock that ends with its process nobody can tell that a directory is left over.
func lock(path string, create bool) (unlock func() error, err error) {
	if !create {
		return nil, errors.ErrUnsupported
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return f.Close, nil
}
