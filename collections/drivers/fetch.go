package drivers

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"taskledger/behaviors"
	"taskledger/behaviors/builtin"
	"taskledger/collections"
)

// fetcher runs the driver fetch.
type fetcher struct {
	from     sources
	to       builtin.ChecksumOptions // the directory that is written to
	maxBytes int64
	memory   memory
}

// fetch brings a file up to date, and returns what it did. What has changed is judged by content. Where the server, or
// the time of a file, tells that nothing has, since this process brought the file that is there, nothing is read.
func (f *fetcher) fetch(ctx context.Context, d collections.Driver) (told string, err error) {
	began := time.Now()
	if err := checkFetch(d); err != nil {
		return "", refuse(builtin.CodeInvalid, err)
	}
	t, err := openTarget(f.to, d.To)
	if err != nil {
		return "", err
	}
	defer t.close()
	is, err := t.stat()
	if err != nil {
		return "", err
	}
	from := "url " + d.URL
	if d.URL == "" {
		from = "path " + d.Path
	}
	got, err := f.from.open(ctx, d, f.memory.known(d.To, from, is))
	if err != nil {
		return "", err
	}
	done := func(what string) string {
		return fmt.Sprintf("%s: %s, in %s", d.To, what, time.Since(began).Round(time.Millisecond))
	}
	if got == nil {
		return done("unchanged"), nil
	}
	defer got.Close()
	if got.size > f.maxBytes {
		return "", f.tooLarge()
	}
	n, changed, now, err := f.put(ctx, t, got)
	if err != nil {
		return "", err
	}
	f.memory.note(d.To, fetched{from, got.version, now})
	if !changed {
		return done("unchanged"), nil
	}
	return done(fmt.Sprintf("%d bytes", n)), nil
}

// checkFetch refuses what package collections would: parameters can be of anybody who may submit.
func checkFetch(d collections.Driver) error {
	if (d.URL == "") == (d.Path == "") {
		return fmt.Errorf("driver %s: want one of url and path", collections.Fetch)
	}
	for _, p := range []struct{ key, value string }{{"to", d.To}, {"path", d.Path}} {
		if p.key == "path" && p.value == "" {
			continue
		}
		if !fs.ValidPath(p.value) || p.value == "." || strings.ContainsAny(p.value, "\\\x00") {
			return fmt.Errorf("%s %q: want a relative path of names parted by \"/\", without \".\" and \"..\"", p.key, p.value)
		}
	}
	if isTemporary(path.Base(d.To)) {
		return fmt.Errorf("to %q: its name is that of a file that is being fetched", d.To)
	}
	return nil
}

func (f *fetcher) tooLarge() error {
	return refuse(builtin.CodeRefused, fmt.Errorf("the file exceeds the limit of %d bytes", f.maxBytes))
}

// put makes the target of the content, unless it is that already, and returns its size, and what it is now.
func (f *fetcher) put(
	ctx context.Context, t *target, from *content,
) (n int64, changed bool, now os.FileInfo, err error) {
	temporary, err := t.temporary()
	if err != nil {
		return 0, false, nil, err
	}
	defer temporary.discard()
	sum := sha256.New()
	n, err = f.copy(ctx, io.MultiWriter(temporary, sum), from)
	if err != nil {
		return 0, false, nil, err
	}
	now, equal, err := t.holds(ctx, n, sum.Sum(nil))
	if err != nil || equal {
		return n, false, now, err
	}
	now, err = temporary.place()
	return n, true, now, err
}

// copy copies up to the limit, and stops once ctx has ended.
func (f *fetcher) copy(ctx context.Context, to io.Writer, from *content) (n int64, err error) {
	attempt, _ := behaviors.Attempt(ctx)
	buffer := make([]byte, 256<<10)
	for {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		got, err := from.Read(buffer)
		if n += int64(got); n > f.maxBytes {
			return n, f.tooLarge()
		}
		if _, failed := to.Write(buffer[:got]); failed != nil {
			return n, fmt.Errorf("write at byte %d: %w", n, failed)
		}
		switch {
		case err == io.EOF:
			return n, nil
		case ctx.Err() != nil:
			return n, context.Cause(ctx)
		case err != nil:
			return n, fmt.Errorf("read at byte %d: %w", n, err)
		}
		attempt.Progress(n, max(from.size, 0), "")
	}
}
