package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// socketName is etcd's socket in a directory of its own, which nobody but the user may enter.
	socketName = "etcd"
	// maxSocketPath is what every system takes of a socket's path, with some left.
	maxSocketPath = 100
)

// makeSocketDir makes the directory of the socket, for the user alone, and returns the socket's path: below the data, or
// below the system's directory for temporary files where that would be too long. The data must be locked: what is there of
// an earlier start is removed.
func makeSocketDir(data string) (path string, err error) {
	data, err = filepath.Abs(data)
	if err != nil {
		return "", fmt.Errorf("directory of etcd's socket: %w", err)
	}
	path = filepath.Join(data, "socket", socketName)
	if len(path) > maxSocketPath {
		sum := sha256.Sum256([]byte(data)) // the same after a restart
		path = filepath.Join(os.TempDir(), "taskledger-"+hex.EncodeToString(sum[:8]), socketName)
	}
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("etcd's socket %s: %d bytes, want at most %d: data in %s, TMPDIR", path, len(path), maxSocketPath, data)
	}
	// Made now, not found: whoever made it owns it, and another user cannot have put it there.
	dir := filepath.Dir(path)
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("directory of etcd's socket: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fmt.Errorf("directory of etcd's socket: %w", err)
	}
	return path, nil
}
