//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package trees

import (
	"io/fs"
	"time"
)

// changedAt knows nothing: the system does not tell when an entry was changed.
func changedAt(fs.FileInfo) (at time.Time, known bool) { return at, false }
