package disk

import (
	"errors"
	"fmt"
	"strings"
)

// beingWritten ends the names of files that are not whole yet.
const beingWritten = ".new"

// Replace makes data the content of a file: it writes them beside it, and renames that. Whenever it is stopped, the
// file has its old content or data. When it returns, data are durable.
func Replace(l Layer, name string, data ...[]byte) error {
	if err := replace(l, name, data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func replace(l Layer, name string, data [][]byte) error {
	if err := l.Remove(name + beingWritten); err != nil {
		return err
	}
	f, _, err := l.Open(name+beingWritten, true)
	if err != nil {
		return err
	}
	for _, piece := range data {
		if _, err := f.Write(piece); err != nil {
			return errors.Join(err, f.Close(), l.Remove(name+beingWritten))
		}
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := l.Rename(name+beingWritten, name); err != nil {
		return err
	}
	return l.SyncDir()
}

// ReadAll returns the content of a file.
func ReadAll(l Layer, name string) ([]byte, error) {
	f, size, err := l.Open(name, false)
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if size > 0 {
		_, err = f.ReadAt(data, 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return data, nil
}

// RemoveUnfinished removes what Replace has left of files that it did not finish.
func RemoveUnfinished(l Layer) error {
	names, err := l.List()
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, beingWritten) {
			if err := l.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}
