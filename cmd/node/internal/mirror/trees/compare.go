package trees

import (
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"os"
)

// place is a file of a tree.
type place struct {
	tree *os.Root
	path string
	info fs.FileInfo
}

// same reports whether two regular files have the same content: the same size, and the same SHA-256.
func same(ctx context.Context, a, b place) (bool, error) {
	if a.info.Size() != b.info.Size() {
		return false, nil
	}
	x, err := a.sum(ctx)
	if err != nil {
		return false, err
	}
	y, err := b.sum(ctx)
	return err == nil && x == y, err
}

func (p place) sum(ctx context.Context) (sum [sha256.Size]byte, err error) {
	file, err := p.tree.Open(p.path)
	if err != nil {
		return sum, err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, reader{ctx, file}); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// reader stops once its context has ended.
type reader struct {
	ctx  context.Context
	from io.Reader
}

// Read implements io.Reader.
func (r reader) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(b)
}
