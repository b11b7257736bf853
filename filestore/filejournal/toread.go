package filejournal

import (
	"cmp"
	"errors"
	"fmt"

	"taskledger/filestore/internal/disk"
)

// ErrReadOnly reports a write to a journal that was opened to be read.
var ErrReadOnly = disk.ErrReadOnly

// ErrNoLock reports a journal whose file lock is missing. Nothing would keep a node away while that is read.
var ErrNoLock = disk.ErrNoLock

// OpenToRead opens the journal in a directory without changing anything there, also where that cannot be changed. Any
// number of readers share it. What a crash has left at its end is passed over. It wraps ErrInUse while somebody may
// write to it, fs.ErrNotExist where there is no journal, ErrNoLock, ErrFormat, or events.ErrDamaged with the name of
// the file. The caller closes it.
func OpenToRead(dir string) (*Journal, error) {
	unlock, err := disk.LockToRead(dir, isFile)
	if err != nil {
		return nil, fmt.Errorf("open journal in %s: %w", dir, err)
	}
	j, err := openToRead(disk.ReadOnly(dir))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal in %s: %w", dir, err), unlock())
	}
	j.unlock = unlock
	return j, nil
}

func openToRead(l disk.Rewritable) (*Journal, error) {
	j, last, left, fresh, err := read(l, Options{}.complete())
	if err != nil {
		return nil, err
	}
	if fresh {
		return nil, errors.Join(fmt.Errorf("%w: there is no file %s", ErrFormat, formatFile), j.closeFiles())
	}
	j.run, j.readOnly = *last, true
	if left != nil {
		left.segment.size = left.cut
		if left.zeros {
			j.run.Lost = cmp.Or(j.run.Lost, lostSectors)
		}
	}
	return j, nil
}
