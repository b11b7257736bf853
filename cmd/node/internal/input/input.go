// Package input reads what a command takes from a file or from standard input.
package input

import (
	"context"
	"fmt"
	"io"
	"os"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/task"
)

// Read reads a file, or stdin for -, of at most so many bytes. Errors call the input what. Nothing can end a read of a
// terminal or a pipe, or the wait for somebody to write into one, so such a read is left behind when ctx ends: the
// program is about to end, too.
func Read(ctx context.Context, what, file string, stdin io.Reader, most int64) ([]byte, error) {
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		text, err := readMost(what, file, stdin, most)
		done <- read{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("read %s: %w", what, context.Cause(ctx))
	}
}

func readMost(what, file string, stdin io.Reader, most int64) ([]byte, error) {
	from := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, &exitcode.UsageError{Problem: fmt.Sprintf("read %s: %v", what, err)}
		}
		defer f.Close()
		from = f
		if about, err := f.Stat(); err == nil && about.Mode().IsRegular() && about.Size() > most {
			return nil, &task.LimitError{Field: what, Limit: most, Got: about.Size()}
		}
	}
	text, err := io.ReadAll(io.LimitReader(from, most+1)) // one byte more than fits, so that what is too large shows
	switch {
	case err != nil:
		return nil, &exitcode.UsageError{Problem: fmt.Sprintf("read %s: %v", what, err)}
	case int64(len(text)) > most:
		return nil, &exitcode.UsageError{Problem: fmt.Sprintf("%s: more than %d bytes, which is the limit", what, most)}
	}
	return text, nil
}
