package trees

import (
	"context"
	"errors"
	"io/fs"
	"path"
)

// errNotEmpty is returned for a directory that is to be deleted and still has entries, such as the part of a file that
// is being copied. A later scan finds these, or the end of the copy deletes both.
var errNotEmpty = errors.New("it is not empty yet")

// equalize makes an entry of the target equal to that of the source as both are now, without what is below it, and
// gives the directories above it their modes and times. It says why there was nothing to do.
func (p *Pair) equalize(ctx context.Context, at string) (skipped string, err error) {
	skipped, err = p.replace(ctx, at)
	return skipped, errors.Join(err, p.dressAbove(at))
}

// replace is equalize without the directories above.
func (p *Pair) replace(ctx context.Context, at string) (skipped string, err error) {
	switch to, err := p.target.Lstat(at); {
	case missing(err):
	case err != nil:
		return "", err
	default:
		switch is, err := p.fate(entry{path: at, kind: to.Mode().Type()}); {
		case err != nil:
			return "", err
		case is == gone:
			if entries, err := list(p.target, at); to.IsDir() && err == nil && len(entries) > 0 {
				return "", errNotEmpty
			}
			return p.delete(ctx, at)
		case is == inTheWay:
			if err := p.clear(ctx, entry{path: at, kind: to.Mode().Type()}); err != nil {
				return "", err
			}
			if reached, err := p.reach(ctx, at); !reached {
				return "", err
			}
		}
	}
	switch reached, err := p.reach(ctx, at); {
	case err != nil:
		return "", err
	case !reached:
		return "the source does not have it any more", nil
	}
	from, err := p.source.Lstat(at)
	switch {
	case missing(err):
		return "the source does not have it any more", nil
	case err != nil:
		return "", err
	case from.IsDir():
		skipped, err = p.directory(ctx, at)
	default:
		skipped, err = p.copy(ctx, at)
	}
	if err != nil {
		return "", err
	}
	return skipped, p.withdraw(ctx, at)
}

// clear deletes an entry of the target that is in the way, with all that is below it: what a change has made there that
// was told before the source had something else in its place is found by no scan before the next one.
func (p *Pair) clear(ctx context.Context, top entry) (err error) {
	w := walker{
		tree:          p.target,
		childrenFirst: true,
		yield: func(e entry, _ error) bool {
			if err = e.unreadable; err == nil {
				_, err = p.delete(ctx, e.path)
			}
			return err == nil
		},
	}
	w.visit(top)
	return err
}

// withdraw deletes an entry of the target that the source does not have any more, and the directories above it that are
// empty then: it may have vanished while it was copied, when nobody could find it in the target.
func (p *Pair) withdraw(ctx context.Context, at string) error {
	for ; at != "."; at = path.Dir(at) {
		to, err := p.target.Lstat(at)
		if missing(err) {
			continue
		}
		if err != nil {
			return err
		}
		is, err := p.fate(entry{path: at, kind: to.Mode().Type()})
		if is == stays || err != nil {
			return err
		}
		if to.IsDir() {
			if entries, err := list(p.target, at); len(entries) > 0 || err != nil {
				return nil // a later scan finds them
			}
		}
		if _, err := p.delete(ctx, at); err != nil {
			return err
		}
	}
	return nil
}

// reach reports whether the source has the directories above an entry, and deletes what has their place in the target.
func (p *Pair) reach(ctx context.Context, at string) (bool, error) {
	for end := range len(at) {
		if at[end] != '/' {
			continue
		}
		above := entry{path: at[:end], kind: fs.ModeDir}
		if is, err := p.inside(above); is != stays || err != nil {
			return false, err
		}
		switch to, err := p.target.Lstat(above.path); {
		case missing(err):
		case err != nil:
			return false, err
		case !to.IsDir():
			if _, err := p.delete(ctx, above.path); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// dressAbove gives the directories above an entry their modes and times, where both trees have them. It goes up as long
// as one was not as it should be: who changes a directory dresses it, and so each that it was made in.
func (p *Pair) dressAbove(at string) error {
	for is := false; at != "." && (!is || p.opened.Load()); {
		at = path.Dir(at)
		var err error
		if is, err = p.dressed(at); err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

// dressed gives a directory its mode and time, and reports whether it had them.
func (p *Pair) dressed(at string) (is bool, err error) {
	from, err := p.source.Lstat(at)
	if err != nil || !from.IsDir() {
		return false, err
	}
	to, err := p.target.Lstat(at)
	if err != nil || !to.IsDir() {
		return false, err
	}
	is = to.Mode().Perm() == from.Mode().Perm() && to.ModTime().Equal(from.ModTime())
	return is, p.dress(at, to, from)
}
