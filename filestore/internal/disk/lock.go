package disk

import (
	"errors"
	"path/filepath"
)

// ErrInUse reports that a directory is in use, by another process or by this one.
var ErrInUse = errors.New("directory is in use")

// lockPath returns the path of the file of a directory that its user locks.
func lockPath(dir string) string { return filepath.Join(dir, "lock") }
