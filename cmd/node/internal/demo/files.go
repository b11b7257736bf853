package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"taskledger/events"
)

// file is one regular file and what it was when the demo began.
type file struct {
	path string // relative to the root
	info fs.FileInfo
}

// id names the task of the file. It depends on the path alone, and spreads the tasks over all shards.
func (f file) id() events.TaskID {
	sum := sha256.Sum256([]byte(f.path))
	return events.TaskID("checksum-" + hex.EncodeToString(sum[:12]))
}

// collect returns the regular files below root, without git's and those of data directories, and what could not be
// looked at.
func collect(root string) (files []file, unseen []error, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == root:
			return err
		case errors.Is(err, fs.ErrNotExist): // it was removed while its directory was read
			return nil
		case err != nil:
			unseen = append(unseen, err)
			return nil
		case d.IsDir() && path != root && (d.Name() == ".git" || isData(path)):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil // vanished
		}
		name, err := filepath.Rel(root, path)
		files = append(files, file{name, info})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("collect files: %w", err)
	}
	return files, unseen, nil
}

// isData reports whether a node keeps its data in the directory.
func isData(dir string) bool {
	_, lock := os.Stat(filepath.Join(dir, "lock"))
	_, etcd := os.Stat(filepath.Join(dir, "etcd", "member"))
	return lock == nil && etcd == nil
}

// fate says whether a file has changed or vanished since it was collected.
type fate int

const (
	same fate = iota
	changed
	vanished
)

// look compares a file with what it was.
func (f file) look(root string) fate {
	now, err := os.Lstat(filepath.Join(root, f.path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return vanished
	case err != nil || !now.Mode().IsRegular() || !os.SameFile(f.info, now) || now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime()):
		return changed
	}
	return same
}

// sum computes the checksum directly.
func (f file) sum(root string) (string, error) {
	in, err := os.Open(filepath.Join(root, f.path))
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
