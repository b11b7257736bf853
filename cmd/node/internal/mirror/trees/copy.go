package trees

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"taskledger/behaviors"
	"taskledger/work"
)

const equal = "it is equal"

// copy makes a file or link of the target equal to that of the source.
func (p *Pair) copy(ctx context.Context, at string) (skipped string, err error) {
	switch from, err := p.source.Lstat(at); {
	case missing(err):
		return "the source does not have it any more", nil
	case err != nil:
		return "", err
	case from.Mode().IsRegular():
		return p.copyFile(ctx, place{p.source, at, from})
	case from.Mode()&fs.ModeSymlink != 0:
		return p.copyLink(ctx, at)
	default:
		return fmt.Sprintf("%s is neither a file nor a link", from.Mode().Type()), nil
	}
}

func (p *Pair) copyFile(ctx context.Context, from place) (skipped string, err error) {
	to, err := p.target.Lstat(from.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", err
	case to.Mode().IsRegular():
		is, err := same(ctx, from, place{p.target, from.path, to})
		if err != nil {
			return "", err
		}
		if is {
			return equal, p.dress(from.path, to, from.info)
		}
	}
	part, err := p.write(ctx, from)
	if err != nil {
		return "", err
	}
	return "", p.install(ctx, part, from.path)
}

// write copies a file of the source to a new part, which is complete and synced when it returns.
func (p *Pair) write(ctx context.Context, from place) (part string, err error) {
	in, err := p.source.Open(from.path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	if err := unchanged(from, in); err != nil {
		return "", err
	}
	part = p.parts.add(newPart(from.path))
	out, err := p.create(part)
	if err != nil {
		p.parts.forget(part)
		return "", err
	}
	_, err = io.Copy(out, reader{ctx, in})
	if err == nil {
		err = unchanged(from, in)
	}
	if err == nil {
		err = out.Chmod(from.info.Mode().Perm())
	}
	if err == nil {
		err = p.setTime(part, from.info)
	}
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		p.parts.forget(part)
		return "", errors.Join(err, p.target.Remove(part))
	}
	return part, nil
}

// unchanged returns an error with CodeChanged if a file of the source is not, or no more, as it was.
func unchanged(was place, file *os.File) error {
	now, err := file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(was.info, now) || now.Size() != was.info.Size() || !now.ModTime().Equal(was.info.ModTime()) {
		return behaviors.Code(CodeChanged, fmt.Errorf("%s was changed while it was copied", was.path), nil)
	}
	return nil
}

func (p *Pair) create(part string) (file *os.File, err error) {
	err = p.change(path.Dir(part), func() (err error) {
		file, err = p.target.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return err
	})
	return file, err
}

func (p *Pair) copyLink(ctx context.Context, at string) (skipped string, err error) {
	to, err := p.source.Readlink(at)
	if err != nil {
		return "", err
	}
	if was, err := p.target.Readlink(at); err == nil && was == to {
		return equal, nil
	}
	part := p.parts.add(newPart(at))
	if err := p.change(path.Dir(at), func() error { return p.target.Symlink(to, part) }); err != nil {
		p.parts.forget(part)
		return "", err
	}
	return "", p.install(ctx, part, at)
}

// install puts a part in its place, and otherwise removes it.
func (p *Pair) install(ctx context.Context, part, at string) error {
	defer p.parts.forget(part)
	err := work.Permit(ctx, CounterCopies)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = p.target.Rename(part, at)
	}
	if err != nil {
		err = errors.Join(err, p.target.Remove(part))
	}
	return err
}

// finish completes a part that somebody has left behind if it holds all of its file, and removes it otherwise.
func (p *Pair) finish(ctx context.Context, part string) (skipped string, err error) {
	left, err := p.target.Lstat(part)
	if errors.Is(err, fs.ErrNotExist) {
		return "it is gone", nil
	}
	if err != nil {
		return "", err
	}
	at, _ := cutPart(part)
	complete, err := p.completes(ctx, place{p.target, part, left}, at)
	if err != nil {
		return "", err
	}
	if complete {
		return "", p.install(ctx, part, at)
	}
	return "nothing was left to complete, so it was removed", p.remove(part)
}

// completes reports whether a part holds the file that the target lacks at a path, and if so makes it ready for that.
func (p *Pair) completes(ctx context.Context, part place, at string) (bool, error) {
	if !part.info.Mode().IsRegular() || !isWhole(at) {
		return false, nil
	}
	if f, err := p.fate(entry{path: at}); f != stays || err != nil {
		return false, err
	}
	info, err := p.source.Lstat(at)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	from := place{p.source, at, info}
	if is, err := same(ctx, from, part); !is || err != nil {
		return false, err
	}
	switch there, err := p.target.Lstat(at); {
	case err == nil && there.IsDir(), err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	case err == nil && there.Mode().IsRegular():
		if is, err := same(ctx, from, place{p.target, at, there}); is || err != nil {
			return false, err
		}
	}
	file, err := p.target.Open(part.path)
	if err != nil {
		return false, err
	}
	err = errors.Join(p.dress(part.path, part.info, info), file.Sync(), file.Close())
	return err == nil, err
}
