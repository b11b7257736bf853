package disk

import (
	"errors"
	"io"
	"os"
)

// Rewriter writes a part of a file over itself.
type Rewriter interface {
	// RewritePart writes the bytes between two offsets of a file once more, and returns when they and everything before
	// them that was written is durable.
	//
	// A sync that failed, in this process or in one before, may have left bytes that are read and that no later sync
	// writes: Linux takes the pages of a write that failed for written. Only a write of the same bytes makes such pages
	// ones that are to be written. No byte has another value at any time, so a crash in between takes nothing that was
	// durable.
	RewritePart(name string, from, to int64) error
}

// Rewritable is a Layer of files that may have been written before a sync that failed.
type Rewritable interface {
	Layer
	Rewriter
}

var _ Rewritable = Dir("")

// rewriteBytes bounds what is read at once.
const rewriteBytes = 1 << 20

// RewritePart implements Rewriter. The file is opened for it, since one that is written at its end is written nowhere
// else.
func (d Dir) RewritePart(name string, from, to int64) error {
	f, err := os.OpenFile(d.path(name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(rewrite(f, from, to), f.Close())
}

func rewrite(f *os.File, from, to int64) error {
	piece := make([]byte, min(rewriteBytes, max(to-from, 0)))
	for from < to {
		piece = piece[:min(int64(len(piece)), to-from)]
		if _, err := io.ReadFull(io.NewSectionReader(f, from, int64(len(piece))), piece); err != nil {
			return err
		}
		if _, err := f.WriteAt(piece, from); err != nil {
			return err
		}
		from += int64(len(piece))
	}
	return f.Sync()
}

// RewritePart implements Rewriter.
func (d ReadOnly) RewritePart(string, int64, int64) error { return ErrReadOnly }
