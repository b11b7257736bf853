package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// ErrReadOnly reports a change of a directory that was opened to be read.
var ErrReadOnly = errors.New("directory was opened to be read")

// ReadOnly is the Layer of a directory of the operating system in which nothing changes: what would change something
// wraps ErrReadOnly.
type ReadOnly string

var _ Layer = ReadOnly("")

// Open implements Layer.
func (d ReadOnly) Open(name string, how Access) (File, int64, error) {
	if how == Anew {
		return nil, 0, fmt.Errorf("make %s: %w", name, ErrReadOnly)
	}
	f, err := os.Open(Dir(d).path(name))
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return readOnlyFile{f}, info.Size(), nil
}

// List implements Layer.
func (d ReadOnly) List() ([]string, error) { return Dir(d).List() }

// Rename implements Layer.
func (d ReadOnly) Rename(from, _ string) error { return fmt.Errorf("rename %s: %w", from, ErrReadOnly) }

// Remove implements Layer.
func (d ReadOnly) Remove(name string) error { return fmt.Errorf("remove %s: %w", name, ErrReadOnly) }

// SyncDir implements Layer.
func (d ReadOnly) SyncDir() error { return nil }

// readOnlyFile is a file of a ReadOnly.
type readOnlyFile struct{ *os.File }

func (f readOnlyFile) Write([]byte) (int, error) { return 0, ErrReadOnly }
func (f readOnlyFile) Truncate(int64) error      { return ErrReadOnly }
func (f readOnlyFile) Sync() error               { return nil }

// ErrNoLock reports files without the lock that stands beside them: a copy that leaves out what is empty has no lock.
var ErrNoLock = errors.New("the file lock is missing, which is empty and may have been left out of a copy")

// LockToRead takes the lock of a directory for a reader, which ends with unlock and with the process. Any number of
// readers share it. It changes nothing, and wraps ErrInUse where somebody may write there, ErrNoLock where there is no
// lock and holds is true of the name of a file, and fs.ErrNotExist where nobody has ever written.
func LockToRead(dir string, holds func(name string) bool) (unlock func() error, err error) {
	f, err := os.Open(lockPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notLocked(dir, holds, err)
	}
	if err != nil {
		return nil, err
	}
	if err := lockShared(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", dir, err), f.Close())
	}
	return f.Close, nil
}

// notLocked returns why a directory cannot be locked in which there is no lock, as missing says.
func notLocked(dir string, holds func(name string) bool, missing error) error {
	names, err := Dir(dir).List()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if i := slices.IndexFunc(names, holds); i >= 0 {
		return fmt.Errorf("%w: %s is there; make %s anew, empty", ErrNoLock, names[i], lockPath(dir))
	}
	return fmt.Errorf("nothing was ever written: %w", missing)
}
