//go:build darwin || netbsd

package trees

import (
	"io/fs"
	"syscall"
	"time"
)

// changedAt returns the time of the last change of an entry, its name and its mode included.
func changedAt(info fs.FileInfo) (at time.Time, known bool) {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return time.Unix(s.Ctimespec.Unix()), true
	}
	return at, false
}
