package mirror

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// temporaryPrefix begins the names of the directories of mirrors that were given none.
	temporaryPrefix = "taskledger-mirror-"
	// lockName is the file of a temporary directory that its process has locked.
	lockName = "mirror.lock"
	// maxTemporary bounds the tries to make a directory that nobody removes meanwhile.
	maxTemporary = 10
)

// errLocked reports a file that another process has locked.
var errLocked = errors.New("the file is locked")

// makeTemporary makes a directory for the servers, and removes those of processes that were killed. remove removes it.
func makeTemporary() (dir string, remove func() error, err error) {
	removeLeftOver(os.TempDir())
	for range maxTemporary {
		if dir, err = os.MkdirTemp("", temporaryPrefix); err != nil {
			return "", nil, fmt.Errorf("make a directory for the servers: %w", err)
		}
		unlock, err := lock(filepath.Join(dir, lockName), true)
		switch _, gone := os.Stat(filepath.Join(dir, lockName)); {
		case err == nil && gone == nil:
			return dir, func() error { return errors.Join(os.RemoveAll(dir), unlock()) }, nil
		case err == nil:
			_ = unlock() // another process has taken the directory for one that was left over
		case !errors.Is(err, errLocked):
			return "", nil, errors.Join(fmt.Errorf("lock a directory for the servers: %w", err), os.RemoveAll(dir))
		}
	}
	return "", nil, fmt.Errorf("make a directory for the servers: each of %d was removed at once", maxTemporary)
}

// removeLeftOver removes the temporary directories below a directory whose processes do not live any more. What
// belongs to other users, or cannot be removed, stays.
func removeLeftOver(below string) {
	entries, _ := os.ReadDir(below)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), temporaryPrefix) {
			continue
		}
		dir := filepath.Join(below, e.Name())
		if unlock, err := lock(filepath.Join(dir, lockName), false); err == nil {
			_ = os.RemoveAll(dir)
			_ = unlock()
		}
	}
}
