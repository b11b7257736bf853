package trees

import (
	"errors"
	"io/fs"
	"strings"
)

// fate says what becomes of an entry of the target.
type fate uint8

const (
	stays    fate = iota // the source has it, perhaps with another content
	gone                 // the source does not have it
	inTheWay             // it has the place of a directory, or of a file or link that is copied to it or to a parent of it
)

// fate looks an entry of the target up in the source, and follows no link there.
func (p *Pair) fate(e entry) (fate, error) {
	for end := 0; end < len(e.path); end++ {
		if next := strings.IndexByte(e.path[end:], '/'); next >= 0 {
			end += next
		} else {
			end = len(e.path)
		}
		info, err := p.source.Lstat(e.path[:end])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return gone, nil
		case err != nil:
			return stays, err
		case end == len(e.path):
			if info.IsDir() == e.isDir() || !isCopied(info.Mode()) {
				return stays, nil
			}
			return inTheWay, nil
		case !info.IsDir() && isCopied(info.Mode()):
			return inTheWay, nil
		case !info.IsDir():
			return gone, nil
		}
	}
	return stays, nil
}

// isCopied reports whether entries of a kind are copied.
func isCopied(kind fs.FileMode) bool {
	return kind.IsRegular() || kind.IsDir() || kind&fs.ModeSymlink != 0
}
