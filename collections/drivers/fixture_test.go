package drivers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"taskledger/behaviors/builtin"
	"taskledger/collections"
	"taskledger/collections/drivers"
	"taskledger/internal/testkit"
	"taskledger/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a node whose options a test may change before its first run.
type fixture struct {
	*testing.T
	drivers.Options
	behavior task.Behavior
}

// newFixture returns a node with a directory to fetch to, one to fetch from, and any address.
func newFixture(t *testing.T) *fixture {
	return &fixture{T: t, Options: drivers.Options{
		Node:  "b",
		HTTP:  builtin.HTTPOptions{AllowPrivate: true},
		Files: builtin.ChecksumOptions{Root: t.TempDir()},
		Root:  t.TempDir(),
	}}
}

// output is the log of an attempt.
type output struct {
	mu    sync.Mutex
	lines bytes.Buffer // each begins with its level
}

func (o *output) write(level slog.Level) io.Writer {
	return writer(func(b []byte) (int, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.lines.WriteString(level.String() + " ")
		return o.lines.Write(b)
	})
}

type writer func([]byte) (int, error)

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) { return w(b) }

// run makes an attempt, and returns how it ended and the lines of its log.
func (f *fixture) run(ctx context.Context, d collections.Driver) (task.Outcome, []string) {
	f.Helper()
	f.open()
	a := testkit.Attempt(f.T, collections.Params{
		Source:     "shop",
		Collection: "orders",
		Driver:     d,
	})
	var log output
	a.Output = func(level slog.Level, _ bool) io.Writer { return log.write(level) }
	o := f.behavior.Run(ctx, a)
	return o, strings.Split(strings.TrimSuffix(log.lines.String(), "\n"), "\n")
}

func (f *fixture) open() {
	if f.behavior == nil {
		f.behavior = drivers.Behavior(f.Options)
	}
}

// does makes an attempt that must succeed, and returns the last line of its log.
func (f *fixture) does(d collections.Driver) string {
	f.Helper()
	o, lines := f.run(f.Context(), d)
	if o.Err != nil {
		f.Fatalf("failed: %+v", o.Err)
	}
	return lines[len(lines)-1]
}

// fails makes an attempt that must fail for good with a code, saying all words in its error and in its last line.
func (f *fixture) fails(d collections.Driver, code string, words ...string) {
	f.Helper()
	o, lines := f.run(f.Context(), d)
	e := testkit.WantFailure(f.T, o, code, true)
	last := lines[len(lines)-1]
	for _, word := range append(words, "ERROR "+e.Message) {
		if !strings.Contains(last, word) {
			f.Errorf("no %q in the last line %q", word, last)
		}
	}
	for _, word := range words {
		if !strings.Contains(e.Message, word) {
			f.Errorf("no %q in the error %q", word, e.Message)
		}
	}
}

func (f *fixture) writeSource(path, text string) {
	f.Helper()
	must(f.T, os.WriteFile(filepath.Join(f.Files.Root, path), []byte(text), 0o600))
}

func (f *fixture) target(path string) string {
	f.Helper()
	text, err := os.ReadFile(filepath.Join(f.Root, path))
	if errors.Is(err, os.ErrNotExist) {
		return "(none)"
	}
	must(f.T, err)
	return string(text)
}

// wantAlone checks that a folder below the root has these files alone.
func (f *fixture) wantAlone(folder string, names ...string) {
	f.Helper()
	entries, err := os.ReadDir(filepath.Join(f.Root, folder))
	must(f.T, err)
	var is []string
	for _, e := range entries {
		is = append(is, e.Name())
	}
	if strings.Join(is, " ") != strings.Join(names, " ") {
		f.Errorf("%s has %q, want %q", folder, is, names)
	}
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func path(from, to string) collections.Driver {
	return collections.Driver{
		Driver: collections.Fetch,
		Path:   from,
		To:     to,
	}
}

func url(from, to string) collections.Driver {
	return collections.Driver{
		Driver: collections.Fetch,
		URL:    from,
		To:     to,
	}
}

func inGo(name string, params any) collections.Driver {
	raw, _ := json.Marshal(params)
	return collections.Driver{Driver: collections.GoPrefix + name, Params: raw}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

var behaviorEpoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
