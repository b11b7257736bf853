package trees

import (
	"errors"
	"io/fs"
)

// fate looks an entry of the target up in the source, and follows no link there.
func (p *Pair) fate(e entry) (fate, error) {
	for end := range len(e.path) {
		if e.path[end] != '/' {
			continue
		}
		inside, err := p.inside(entry{path: e.path[:end], kind: fs.ModeDir})
		if inside != stays || err != nil {
			return inside, err
		}
	}
	return p.fateOf(e)
}

// fateOf is fate of an entry where e.above holds what becomes of it for the sake of the directories above.
func (p *Pair) fateOf(e entry) (fate, error) {
	if e.above != stays {
		return e.above, nil
	}
	info, err := p.source.Lstat(e.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone, nil
	case err != nil, info.IsDir() == e.isDir(), !isCopied(info.Mode()):
		return stays, err
	}
	return inTheWay, nil
}

// inside returns what becomes of the entries of a directory of the target for the sake of that directory and those
// above: they stay if the source has it, too.
func (p *Pair) inside(dir entry) (fate, error) {
	if dir.above != stays {
		return dir.above, nil
	}
	info, err := p.source.Lstat(dir.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return gone, nil
	case err != nil, info.IsDir():
		return stays, err
	case isCopied(info.Mode()):
		return inTheWay, nil
	}
	return gone, nil
}

// isCopied reports whether entries of a kind are copied.
func isCopied(kind fs.FileMode) bool {
	return kind.IsRegular() || kind.IsDir() || kind&fs.ModeSymlink != 0
}
