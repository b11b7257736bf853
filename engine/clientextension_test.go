package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

// A front has the parts that it names: the others are passed over, and a hint reaches the front that has its name.
func TestClientExtensions_CallWhatAFrontHas(t *testing.T) {
	var called []string
	note := func(what string) func() { return func() { called = append(called, what) } }
	all := clientExtensions{
		{},
		{
			Hint:   "bells",
			Hinted: func(data []byte) error { note("hint " + string(data))(); return errors.New("cracked") },
			Again:  note("again"),
			Drain:  note("drain"),
			Run:    func(context.Context) error { note("run")(); return nil },
			Close:  note("close"),
		},
	}
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	all.hinted("others", []byte("1"), log)
	all.hinted("bells", []byte("2"), log)
	all.again()
	all.drain()
	var g errgroup.Group
	all.run(t.Context(), &g)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	all.close()
	if want := []string{"hint 2", "again", "drain", "run", "close"}; !slices.Equal(called, want) {
		t.Errorf("called %q, want %q", called, want)
	}
	if text := logged.String(); strings.Count(text, "hint cannot be read") != 1 || !strings.Contains(text, "cracked") {
		t.Errorf("logged %q", text)
	}
}
