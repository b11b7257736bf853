package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MakeDir makes a directory, and those above it that are missing, for their user alone and durably: what is written
// there durably is not lost with the name of a directory.
func MakeDir(dir string) error {
	return makeDir(filepath.Clean(dir), func(dir string) error { return Dir(dir).SyncDir() })
}

// makeDir syncs what is above each directory before it makes anything in it. So one in which there is something needs
// no sync, and one that is empty may have been made by a process that was killed then.
func makeDir(dir string, sync func(dir string) error) error {
	above := filepath.Dir(dir)
	empty, err := isEmpty(dir)
	switch {
	case err == nil && !empty:
		return nil
	case err == nil:
		if err := sync(above); !isOthers(err) {
			return err
		}
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := makeDir(above, sync); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return sync(above)
}

// isEmpty reports whether there is nothing in a directory, as far as this process may know.
func isEmpty(dir string) (bool, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return false, err
	}
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrPermission) {
		return false, nil // this process has not made it
	}
	if err != nil {
		return false, err
	}
	_, err = f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		return true, f.Close()
	}
	return false, errors.Join(err, f.Close())
}

// isOthers reports whether a directory cannot be synced since it, or its file system, is for others to write.
func isOthers(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EROFS) ||
		errors.Is(err, syscall.EINVAL)
}
