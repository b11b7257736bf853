package drivers

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"taskledger/behaviors/builtin"
)

// The name of a temporary file is temporaryPrefix, a hash of its target's, a random text, and temporarySuffix.
const (
	temporaryPrefix = ".sync-"
	temporarySuffix = ".part"
)

// errHeld reports a file that another attempt holds.
var errHeld = errors.New("another attempt holds it")

// isTemporary reports whether a name may be that of a temporary file.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, temporaryPrefix) && strings.HasSuffix(name, temporarySuffix)
}

// target is a file that is to be replaced whole, in a folder that is open.
type target struct {
	folder *os.Root
	name   string
}

// openTarget makes the folder of a target, and removes from it what killed attempts for the same target have left.
func openTarget(in builtin.ChecksumOptions, to string) (t *target, err error) {
	root, err := os.OpenRoot(in.Root) // it may be a volume that comes and goes: its absence passes
	if err != nil {
		return nil, fmt.Errorf("open the directory to fetch to: %w", err)
	}
	defer root.Close()
	// Folders that there are not yet lie in those that there are.
	for at := to; ; at = path.Dir(at) {
		if err := in.CheckExcluded(at); err != nil {
			return nil, err
		}
		if at == "." {
			break
		}
	}
	dir := path.Dir(to)
	if dir != "." {
		err := root.MkdirAll(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			return nil, refuse(builtin.CodeInvalid, fmt.Errorf("%s: a file is where a folder is to be: %w", to, err))
		}
		if err != nil {
			return nil, builtin.OpenFailure(err)
		}
	}
	t = &target{name: path.Base(to)}
	if t.folder, err = root.OpenRoot(dir); err != nil {
		return nil, builtin.OpenFailure(err)
	}
	if err := t.sweep(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *target) close() { t.folder.Close() }

// stat returns what the target is, nil if it is not there. Only a regular file is replaced.
func (t *target) stat() (os.FileInfo, error) {
	info, err := t.folder.Lstat(t.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, builtin.OpenFailure(err)
	case !info.Mode().IsRegular():
		return nil, refuse(builtin.CodeInvalid, fmt.Errorf("%s is not a regular file: %s", t.name, info.Mode().Type()))
	}
	return info, nil
}

// holds reports whether the target has n bytes of this SHA-256, and what it was before it was read.
func (t *target) holds(ctx context.Context, n int64, wanted []byte) (is os.FileInfo, equal bool, err error) {
	is, err = t.stat()
	if err != nil || is == nil || is.Size() != n {
		return nil, false, err
	}
	f, err := t.folder.OpenFile(t.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil { // it cannot be told
		return nil, false, nil //nolint:nilerr // it is replaced
	}
	defer f.Close()
	if is, err = f.Stat(); err != nil || !is.Mode().IsRegular() {
		return nil, false, err
	}
	sum := sha256.New()
	buffer := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		got, err := f.Read(buffer)
		sum.Write(buffer[:got])
		switch {
		case err == io.EOF:
			return is, bytes.Equal(sum.Sum(nil), wanted), nil
		case err != nil:
			return nil, false, fmt.Errorf("read %s: %w", t.name, err)
		}
	}
}

// prefix begins the names of the temporary files for the target.
func (t *target) prefix() string {
	sum := sha256.Sum256([]byte(t.name))
	return temporaryPrefix + hex.EncodeToString(sum[:8]) + "-"
}

// sweep removes temporary files for the target that no attempt holds. What it may not remove stays.
func (t *target) sweep() error {
	folder, err := t.folder.Open(".")
	if err != nil {
		return builtin.OpenFailure(err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("list the folder of %s: %w", t.name, err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, t.prefix()) || !isTemporary(name) {
			continue
		}
		left, err := t.folder.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if lock(left) == nil {
			_ = t.folder.Remove(name)
		}
		left.Close()
	}
	return nil
}

// temporary is a file that becomes the target. The lock on it says that an attempt holds it.
type temporary struct {
	*os.File
	of   *target
	name string
}

func (t *target) temporary() (*temporary, error) {
	for {
		name := t.prefix() + rand.Text() + temporarySuffix
		f, err := t.folder.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, builtin.OpenFailure(err)
		}
		file := &temporary{f, t, name}
		// Another attempt may have taken it for one that was left, before it was locked. Where there are no locks nobody
		// takes it.
		if lock(f) != errHeld && file.isThere() {
			return file, nil
		}
		file.discard()
	}
}

func (f *temporary) isThere() bool {
	is, err := f.of.folder.Lstat(f.name)
	if err != nil {
		return false
	}
	own, err := f.Stat()
	return err == nil && os.SameFile(is, own)
}

// discard removes the file unless it was placed.
func (f *temporary) discard() {
	if f.name != "" {
		_ = f.of.folder.Remove(f.name)
	}
	f.Close()
}

// place makes the file the target, durably, and returns what that is now.
func (f *temporary) place() (os.FileInfo, error) {
	if err := f.Sync(); err != nil {
		return nil, fmt.Errorf("write %s: %w", f.of.name, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", f.of.name, err)
	}
	if err := f.of.folder.Rename(f.name, f.of.name); err != nil {
		return nil, fmt.Errorf("put %s into place: %w", f.of.name, err)
	}
	f.name = ""
	return info, syncFolder(f.of.folder)
}
