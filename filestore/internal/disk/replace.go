package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"time"
)

// beingWritten ends the names of files that are not whole yet.
const beingWritten = ".new"

// Replace makes data the content of a file: it writes them beside it, and renames that. Whenever it is stopped, the
// file has its old content or data. When it returns, data are durable. After an error that is Full it has its old one.
func Replace(l Layer, name string, data ...[]byte) error {
	return ReplaceIn(l, name, func(rename func() error) error { return rename() }, data...)
}

// ReplaceIn is Replace that leaves the renaming to in, which may keep others from the file meanwhile.
func ReplaceIn(l Layer, name string, in func(rename func() error) error, data ...[]byte) error {
	if err := replace(l, name, in, data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func replace(l Layer, name string, in func(func() error) error, data [][]byte) error {
	if err := l.Remove(name + beingWritten); err != nil {
		return err
	}
	f, _, err := l.Open(name+beingWritten, Anew)
	if err != nil {
		return err
	}
	if err := errors.Join(writeAll(f, data), f.Close()); err != nil {
		return errors.Join(err, l.Remove(name+beingWritten))
	}
	if err := in(func() error { return l.Rename(name+beingWritten, name) }); err != nil {
		return errors.Join(err, l.Remove(name+beingWritten))
	}
	if err := syncDir(l); err != nil {
		return &replacedError{err}
	}
	return nil
}

const (
	openTries = 100
	openPause = 10 * time.Millisecond
)

// syncDir syncs the directory of a layer, and waits up to a second until it can be opened.
func syncDir(l Layer) error {
	for try := 1; ; try++ {
		err := l.SyncDir()
		if !notOpened(err) || try == openTries {
			return err
		}
		time.Sleep(openPause)
	}
}

// replacedError reports that a file has been replaced, and that its name may be lost. It is never Full.
type replacedError struct{ err error }

func (e *replacedError) Error() string { return "its name may be lost: " + e.err.Error() }
func (e *replacedError) Unwrap() error { return e.err }

// Replaced reports whether an error of Replace says that the file has its new content, whose name may be lost.
func Replaced(err error) bool {
	_, is := errors.AsType[*replacedError](err)
	return is
}

// Full reports whether an error says that there was no room for what was left undone: on the disk, or among the open
// files of the process or the machine.
func Full(err error) bool {
	return !Replaced(err) && (noRoom(err) || notOpened(err))
}

// notOpened reports whether an error says that a file could not be opened for now, so that nothing was done to it.
func notOpened(err error) bool {
	of, is := errors.AsType[*fs.PathError](err)
	return is && of.Op == "open" &&
		(errors.Is(of, syscall.EMFILE) || errors.Is(of, syscall.ENFILE) || errors.Is(of, syscall.ENOMEM))
}

// writeAll writes data to a file and syncs them.
func writeAll(f File, data [][]byte) error {
	for _, piece := range data {
		if _, err := f.Write(piece); err != nil {
			return err
		}
	}
	return f.Sync()
}

// ReadAll returns the content of a file.
func ReadAll(l Layer, name string) ([]byte, error) {
	f, size, err := l.Open(name, ToRead)
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
