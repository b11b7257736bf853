package trees

import (
	"errors"
	"io/fs"
	"syscall"
)

// entry is a directory, a file or something else of a tree.
type entry struct {
	path  string // relative to the tree, with slashes; "." for the tree itself
	kind  fs.FileMode
	above fate // that the directories above it lead to; stays where nobody has looked
	// unreadable is the error of a directory that could not be read; nothing below it is yielded.
	unreadable error
}

func (e entry) isDir() bool { return e.kind.IsDir() }

// fate says what becomes of an entry of the target.
type fate uint8

const (
	stays    fate = iota // the source has it, perhaps with another content
	gone                 // the source does not have it
	inTheWay             // it has the place of a directory, or of a file or link that is copied to it or to a parent of it
)

// missing reports whether an error tells that there is no entry at a path, or that something else has the place of a
// directory at it or above it.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
