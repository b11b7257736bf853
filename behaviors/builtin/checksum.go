package builtin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"taskledger/behaviors"
)

// ChecksumOptions say which files a node reads.
type ChecksumOptions struct {
	Root string // the directory that paths are relative to; required
	// Exclude names files and directories that are not read, by whatever path, such as those with the node's secrets.
	// What is below an excluded directory is not read either. A name that does not exist excludes nothing.
	Exclude []string
}

// ChecksumParams are the parameters of "checksum".
type ChecksumParams struct {
	Path string `json:"path"` // relative to the root, within it
}

// Validate refuses a path that leads out of every root.
func (p ChecksumParams) Validate() error {
	if !filepath.IsLocal(p.Path) {
		return fmt.Errorf("path %q: want one relative to the root and within it", p.Path)
	}
	return nil
}

// ChecksumResult is the result of "checksum".
type ChecksumResult struct {
	SHA256 string `json:"sha256"` // hexadecimal
	Bytes  int64  `json:"bytes"`
	Lines  int64  `json:"lines"` // line feeds, as wc -l counts them
}

// Checksum returns the behavior "checksum", which reads a regular file below the root and sums it up. Symbolic links
// are followed as long as they stay within the root. Failures with the codes "not-found", "permission", "refused"
// and, for what is not a regular file, "invalid" are final; the policy retries others. Refused are paths that lead
// out of the root, excluded files, and paths with an element "..", whose meaning would depend on the links before it.
func Checksum(o ChecksumOptions) *behaviors.Bound[ChecksumParams, ChecksumResult] {
	return bind("checksum", o.run)
}

func (o ChecksumOptions) run(ctx context.Context, p ChecksumParams) (ChecksumResult, error) {
	f, info, err := o.Open(p.Path)
	if err != nil {
		return ChecksumResult{}, err
	}
	defer f.Close()
	return checksum(ctx, f, info.Size())
}

// Open opens a file for reading as behavior "checksum" does, whose failures its errors are.
func (o ChecksumOptions) Open(path string) (*os.File, os.FileInfo, error) {
	if o.Root == "" {
		return nil, nil, refuse(CodeRefused, errors.New("no root is configured on this node"))
	}
	// The root is opened for each attempt: it may be a volume that comes and goes. Its absence passes.
	root, err := os.OpenRoot(o.Root)
	if err != nil {
		return nil, nil, fmt.Errorf("open root: %w", err)
	}
	defer root.Close()
	if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), "..") {
		return nil, nil, refuse(CodeRefused, fmt.Errorf("path: %s has an element \"..\"", path))
	}
	if err := o.CheckExcluded(path); err != nil {
		return nil, nil, err
	}
	return openRegular(root, path)
}

// CheckExcluded returns a final failure for a path below the root that is excluded, nil for one that does not exist.
// It compares the file and the directories above it by identity: names may differ in case, or be symbolic links. It
// does not recognize a file elsewhere that is a hard link to one below an excluded directory.
func (o ChecksumOptions) CheckExcluded(path string) error {
	at, err := filepath.EvalSymlinks(filepath.Join(o.Root, path))
	if err == nil {
		at, err = filepath.Abs(at)
	}
	if err != nil {
		return nil // opening it says why
	}
	for parent := filepath.Dir(at); ; at, parent = parent, filepath.Dir(parent) {
		for _, name := range o.Exclude {
			if sameFile(at, name) {
				return refuse(CodeRefused, fmt.Errorf("%s belongs to the node", path))
			}
		}
		if at == parent {
			return nil
		}
	}
}

func sameFile(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}

// openRegular opens a file for reading. Without O_NONBLOCK it would wait for a writer of a named pipe.
func openRegular(root *os.Root, path string) (*os.File, os.FileInfo, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, OpenFailure(err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = refuse(CodeInvalid, fmt.Errorf("%s is a directory: want a regular file", path))
	} else if err == nil && !info.Mode().IsRegular() {
		err = refuse(CodeInvalid, fmt.Errorf("%s is not a regular file: %s", path, info.Mode().Type()))
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// OpenFailure returns the failure with which behavior "checksum" ends for an error of os.Root, such as that of Open.
func OpenFailure(err error) error {
	number, system := errors.AsType[syscall.Errno](err)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return refuse(CodeNotFound, err)
	case errors.Is(err, os.ErrPermission):
		return refuse(CodePermission, err)
	case !system: // the only refusal that is the root's own, and os does not name it: the path leads out
		return refuse(CodeRefused, err)
	}
	switch number {
	case syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ENXIO, syscall.EINVAL:
		return refuse(CodeInvalid, err)
	}
	return err
}

func checksum(ctx context.Context, f io.Reader, size int64) (ChecksumResult, error) {
	attempt, _ := behaviors.Attempt(ctx)
	sum := sha256.New()
	var r ChecksumResult
	buffer := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return ChecksumResult{}, context.Cause(ctx)
		}
		n, err := f.Read(buffer)
		sum.Write(buffer[:n])
		r.Bytes += int64(n)
		r.Lines += int64(bytes.Count(buffer[:n], []byte{'\n'}))
		switch {
		case err == io.EOF:
			r.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return r, nil
		case err != nil:
			return ChecksumResult{}, fmt.Errorf("read at byte %d: %w", r.Bytes, err)
		}
		attempt.Progress(r.Bytes, size, "")
	}
}
