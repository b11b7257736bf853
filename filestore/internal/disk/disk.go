// Package disk is the file layer below a store in files: the few operations on the files of one directory that it is
// made of, so that tests can put a disk in their place that loses power between any two of them.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Layer is one directory of files, without directories in it. A name stands for a file in it. What Open, Rename and
// Remove do to names is durable once SyncDir has returned.
type Layer interface {
	// Open opens a file and returns its size. It wraps fs.ErrNotExist, or fs.ErrExist where it is to be made.
	Open(name string, how Access) (File, int64, error)
	// List returns the names of all files, in order.
	List() ([]string, error)
	// Rename gives a file another name, whose file it replaces.
	Rename(from, to string) error
	// Remove removes a file; that it is not there is no error.
	Remove(name string) error
	SyncDir() error
}

// Access says how a file is opened.
type Access uint8

const (
	// ToRead opens a file to be read alone, also where nothing can be written.
	ToRead Access = iota
	// ToWrite opens a file to be read, and written at its end.
	ToWrite
	// Anew is ToWrite of a file that is made, and must not be there.
	Anew
)

// File is an open file. One goroutine at a time writes and truncates it; others may read and sync it meanwhile.
type File interface {
	// ReadAt reads as io.ReaderAt does.
	ReadAt(into []byte, offset int64) (int, error)
	// Write writes at the end of the file. After an error some of the data may be there.
	Write(data []byte) (int, error)
	// Sync returns when what was written before is durable.
	Sync() error
	// Truncate cuts the file at a size.
	Truncate(size int64) error
	Close() error
}

// Dir is the Layer of a directory of the operating system.
type Dir string

var _ Layer = Dir("")

func (d Dir) path(name string) string { return filepath.Join(string(d), name) }

// Open implements Layer. Files are readable by their user alone.
func (d Dir) Open(name string, how Access) (File, int64, error) {
	flags := os.O_RDWR | os.O_APPEND
	switch how {
	case ToRead:
		return ReadOnly(d).Open(name, how)
	case Anew:
		flags |= os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(d.path(name), flags, 0o600)
	if errors.Is(err, fs.ErrPermission) && how == ToWrite {
		return nil, 0, fmt.Errorf("open to read and write: %w", err)
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// List implements Layer.
func (d Dir) List() ([]string, error) {
	all, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range all {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Rename implements Layer.
func (d Dir) Rename(from, to string) error { return os.Rename(d.path(from), d.path(to)) }

// Remove implements Layer.
func (d Dir) Remove(name string) error {
	err := os.Remove(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// SyncDir implements Layer.
func (d Dir) SyncDir() error {
	dir, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
