package trees

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"taskledger/work"
	"time"
)

// ownerMay lets the owner of a directory read, change and enter it.
const ownerMay = 0o700

// change makes a change in a directory of the target, which is made with its parents where it is missing. A directory
// that its owner must not change is opened for it: the last partition sets the modes.
func (p *Pair) change(dir string, change func() error) error {
	try := func() error {
		err := change()
		if errors.Is(err, fs.ErrNotExist) {
			if err = p.target.MkdirAll(dir, ownerMay); err == nil {
				err = change()
			}
		}
		return err
	}
	err := try()
	if errors.Is(err, fs.ErrPermission) && p.open(dir) {
		err = try()
	}
	return err
}

// remove removes an entry of the target. A directory has to be empty.
func (p *Pair) remove(at string) error {
	err := p.target.Remove(at)
	if errors.Is(err, fs.ErrPermission) && p.open(path.Dir(at)) {
		err = p.target.Remove(at)
	}
	return err
}

// open lets the owner change a directory of the target, and those above it, and reports whether it opened any.
func (p *Pair) open(dir string) (opened bool) {
	for end := 0; end < len(dir); end++ {
		if next := strings.IndexByte(dir[end:], '/'); next >= 0 {
			end += next
		} else {
			end = len(dir)
		}
		info, err := p.target.Lstat(dir[:end])
		if err != nil || !info.IsDir() {
			return opened
		}
		if mode := info.Mode().Perm(); mode&ownerMay != ownerMay {
			p.opened.Store(true)
			opened = p.target.Chmod(dir[:end], mode|ownerMay) == nil || opened
		}
	}
	return opened
}

// delete deletes a file, a link or an empty directory that the source does not have.
func (p *Pair) delete(ctx context.Context, at string) (skipped string, err error) {
	info, err := p.target.Lstat(at)
	if missing(err) {
		return "it is gone", nil
	}
	if err != nil {
		return "", err
	}
	e := entry{path: at, kind: info.Mode().Type()}
	switch f, err := p.fate(e); {
	case err != nil:
		return "", err
	case f == stays:
		return "the source has it by now", nil
	case isPart(e):
		return "it is a copy that nobody has completed, so it was removed", p.remove(at)
	}
	if err := work.Permit(ctx, CounterDeletes); err != nil {
		return "", err
	}
	return "", p.remove(at)
}

// count counts a deletion that is not made.
func count(ctx context.Context, _ string) (skipped string, err error) {
	return "", work.Permit(ctx, CounterDeletes)
}

// directory makes a directory where it is missing, and gives it the mode and the time of that of the source.
func (p *Pair) directory(_ context.Context, at string) (skipped string, err error) {
	from, err := p.source.Lstat(at)
	if missing(err) || err == nil && !from.IsDir() {
		return "the source does not have it any more", nil
	}
	if err != nil {
		return "", err
	}
	to, err := p.target.Lstat(at)
	if errors.Is(err, fs.ErrNotExist) {
		err = p.change(path.Dir(at), func() error { return p.target.Mkdir(at, ownerMay) })
		if err == nil || errors.Is(err, fs.ErrExist) {
			to, err = p.target.Lstat(at)
		}
	}
	if err != nil {
		return "", err
	}
	if !to.IsDir() {
		return "", &fs.PathError{Op: "mkdir", Path: at, Err: fs.ErrExist}
	}
	return "", p.dress(at, to, from)
}

// dress gives a file or directory of the target, as it is, the mode and the time of another one.
func (p *Pair) dress(at string, is, like fs.FileInfo) error {
	if mode := like.Mode().Perm(); is.Mode().Perm() != mode {
		if err := p.target.Chmod(at, mode); err != nil {
			return err
		}
	}
	if is.ModTime().Equal(like.ModTime()) {
		return nil
	}
	return p.setTime(at, like)
}

func (p *Pair) setTime(at string, like fs.FileInfo) error {
	return p.target.Chtimes(at, time.Time{}, like.ModTime())
}
