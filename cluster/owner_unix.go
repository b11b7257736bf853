//go:build unix

package cluster

import (
	"io/fs"
	"os"
	"syscall"
)

// owner returns the id of the user who owns a file.
func owner(info fs.FileInfo) int64 { return int64(info.Sys().(*syscall.Stat_t).Uid) }

// me is the id of the user of this process.
func me() int64 { return int64(os.Geteuid()) }
