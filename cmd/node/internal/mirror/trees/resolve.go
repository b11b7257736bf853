package trees

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"taskledger/store"
)

// Resolve returns the parameters for two directories as a user names them. It returns a *store.InvalidError where the
// source is no directory, where something else stands at the target, which may be missing, and where one of the two is
// the other one or lies below it.
func Resolve(source, target string) (Params, error) {
	from, err := resolve(source)
	if err != nil {
		return Params{}, refuse("source", "%v", err)
	}
	if info, err := os.Stat(from); err != nil {
		return Params{}, refuse("source", "%v", err)
	} else if !info.IsDir() {
		return Params{}, refuse("source", "%s is no directory", source)
	}
	to, err := resolve(target)
	if err != nil {
		return Params{}, refuse("target", "%v", err)
	}
	switch info, err := os.Stat(to); {
	case err == nil && !info.IsDir():
		return Params{}, refuse("target", "%s is no directory", target)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return Params{}, refuse("target", "%v", err)
	case within(from, to) && within(to, from):
		return Params{}, refuse("target", "%s is the directory %s itself: a mirror needs two", target, source)
	case within(from, to):
		return Params{}, refuse("target", "the source %s lies below %s, and would be overwritten and deleted", source, target)
	case within(to, from):
		return Params{}, refuse("target", "%s lies below the source %s, and would be copied into itself", target, source)
	}
	return Params{Source: from, Target: to}, nil
}

// Outside returns a *store.InvalidError if a directory, which may be missing, is one of the trees or lies below one.
func (p Params) Outside(field, dir string) error {
	at, err := resolve(dir)
	switch {
	case err != nil:
		return refuse(field, "%v", err)
	case within(at, p.Source):
		return refuse(field, "%s is the source, or lies below it", dir)
	case within(at, p.Target):
		return refuse(field, "%s is the target, or lies below it", dir)
	}
	return nil
}

// resolve returns an absolute path without links. Of a path that is missing it resolves as much as there is.
func resolve(path string) (string, error) {
	at, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	missing := ""
	for {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			return filepath.Join(real, missing), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if _, err := os.Lstat(at); err == nil {
			return "", fmt.Errorf("%s is a link that leads nowhere", at)
		}
		at, missing = filepath.Dir(at), filepath.Join(filepath.Base(at), missing)
	}
}

// within reports whether a resolved path is a directory or lies below it. Besides names it compares files: a directory
// may be mounted at two places, and a file system may ignore case.
func within(path, dir string) bool {
	of, err := os.Stat(dir)
	if rest, below := strings.CutPrefix(path, dir); below && (rest == "" || os.IsPathSeparator(rest[0])) {
		return true
	}
	if err != nil {
		return false // it is missing
	}
	for {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, of) {
			return true
		}
		parent := filepath.Dir(path)
		if parent == path {
			return false
		}
		path = parent
	}
}

func refuse(field, format string, args ...any) error {
	return &store.InvalidError{
		Field:   field,
		Problem: fmt.Sprintf(format, args...),
	}
}
