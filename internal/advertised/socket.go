package advertised

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// maxSocketPath bounds the path of a socket: every system takes a little more.
	maxSocketPath = 100
	// socketDirFile remembers in the data where the directory of the sockets is, if it is elsewhere.
	socketDirFile = "socket.dir"
	// elsewhere is the prefix of the names of such directories.
	elsewhere = "taskledger-"
)

// MakeSocketDir makes the directory of the sockets of a node, for the user alone, and returns the path of the one of a
// name: below the data, or below the system's directory for temporary files where that would be too long. The data must
// be locked: what is there of an earlier start is removed. A directory that exists is never used, since another user
// may have made it.
func MakeSocketDir(data, name string) (path string, err error) {
	data, err = filepath.Abs(data)
	if err != nil {
		return "", fmt.Errorf("directory of the socket %s: %w", name, err)
	}
	dir := filepath.Join(data, "socket")
	if len(filepath.Join(dir, name)) <= maxSocketPath {
		err = remakeDir(dir)
	} else {
		dir, err = makeDirElsewhere(filepath.Join(data, socketDirFile))
	}
	if err != nil {
		return "", fmt.Errorf("directory of the socket %s: %w", name, err)
	}
	path = filepath.Join(dir, name)
	if len(path) > maxSocketPath {
		_ = os.Remove(dir) // it is empty
		return "", fmt.Errorf("socket %s: %d bytes, want at most %d: data in %s, TMPDIR",
			path, len(path), maxSocketPath, data)
	}
	return path, nil
}

func remakeDir(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

// makeDirElsewhere makes the remembered directory again, or else one with a random name. Everybody may make
// directories there: another user who knew the name could take it first, and the node would not start.
func makeDirElsewhere(remembered string) (dir string, err error) {
	if text, err := os.ReadFile(remembered); err == nil && strings.HasPrefix(filepath.Base(string(text)), elsewhere) &&
		remakeDir(string(text)) == nil {
		return string(text), nil
	}
	if dir, err = os.MkdirTemp("", elsewhere); err != nil { // its mode is 0700
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	return dir, Replace(remembered, []byte(dir))
}

// CheckClosed refuses a directory in which everybody may replace what the node keeps there.
func CheckClosed(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if mode := info.Mode(); info.IsDir() && mode.Perm()&0o002 != 0 {
		return fmt.Errorf("%s has mode %#o: everybody may write to it, and replace its files: "+
			"want 0700, or name a directory of its own below it", dir, mode.Perm())
	}
	return nil
}
