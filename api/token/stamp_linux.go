package token

import (
	"io/fs"
	"syscall"
)

// changed returns when anything of a file was changed, its times among it, in nanoseconds.
func changed(info fs.FileInfo) int64 {
	is := info.Sys().(*syscall.Stat_t)
	return syscall.TimespecToNsec(is.Ctim)
}
