package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// maxLine bounds a line of an answer.
const maxLine = 4 << 20

var errSilent = errors.New("the answer does not go on")

// lines yields the lines of an answer as values, until it ends. An answer that is silent for longer than one may take
// is an error, as is one that breaks off.
func lines[T any](ctx context.Context, l *link, q request) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		silence := time.AfterFunc(l.within, func() { cancel(fmt.Errorf("%w within %s", errSilent, l.within)) })
		defer silence.Stop()
		fail := func(err error) { yield(none, fmt.Errorf("%s: %w", q.does, err)) }
		resp, err := l.send(ctx, &q)
		if err != nil {
			fail(err)
			return
		}
		defer resp.Body.Close()
		all := bufio.NewScanner(awake{resp.Body, silence, l.within})
		all.Buffer(nil, maxLine)
		for all.Scan() {
			var line T
			if err := json.Unmarshal(all.Bytes(), &line); err != nil {
				fail(unavailable(fmt.Errorf("a line of the answer cannot be read: %w", err)))
				return
			}
			silence.Stop() // its reader may take its time
			if !yield(line, nil) {
				return
			}
			silence.Reset(l.within)
		}
		if err := all.Err(); err != nil {
			fail(unavailable(fmt.Errorf("the answer breaks off: %w", orEnded(ctx, err))))
		}
	}
}

// awake is a reader that puts off the alarm whenever something comes.
type awake struct {
	io.Reader
	alarm  *time.Timer
	within time.Duration
}

// Read implements io.Reader.
func (a awake) Read(into []byte) (int, error) {
	n, err := a.Reader.Read(into)
	if n > 0 {
		a.alarm.Reset(a.within)
	}
	return n, err
}
