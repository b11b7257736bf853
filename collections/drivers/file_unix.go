//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package drivers

import (
	"fmt"
	"os"
	"syscall"
)

// lock locks a file until it is closed, also by the end of this process. It returns errHeld where another one has it,
// and any other error where files cannot be locked.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return errHeld
	}
	return err
}

// syncFolder makes names in a folder durable.
func syncFolder(folder *os.Root) error {
	f, err := folder.Open(".")
	if err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write the folder: %w", err)
	}
	return nil
}
