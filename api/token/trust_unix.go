//go:build unix

package token

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// open opens a file of any kind without a wait, as for a FIFO to which nobody writes.
func open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) }

// ofOurs says whose a file is that belongs to neither root nor the user of this process.
func ofOurs(info fs.FileInfo) error {
	uid := int64(info.Sys().(*syscall.Stat_t).Uid)
	if me := int64(os.Geteuid()); uid != 0 && uid != me {
		return fmt.Errorf("belongs to user %d: want root or the user of this process, %d", uid, me)
	}
	return nil
}
