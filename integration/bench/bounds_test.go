package bench_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// told is a test that keeps the errors that it is told.
type told struct {
	testing.TB
	errors []string
}

func (t *told) Helper() {}

func (t *told) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

func TestFigures_TellTheBoundThatIsBroken(t *testing.T) {
	set := func(f figures) {
		f.is("tasks/s", math.NaN())
		f.atLeast("ratio", 0.7, 0.7)
		f.atLeast("depth-ratio", 0.69, 0.7)
		f.atLeast("share", math.NaN(), 0.1)
		f.atMost("heap-MiB", 400, 400)
		f.atMost("turn-p99-ms", 10.5, 10)
		f.atMost("page-p99-ms", math.NaN(), 250)
	}
	want := []string{
		"depth-ratio is 0.690, want at least 0.7",
		"share is NaN, want at least 0.1",
		"turn-p99-ms is 10.500, want at most 10",
		"page-p99-ms is NaN, want at most 250",
	}
	t.Setenv("PROOF", "1")
	proof := &told{TB: t}
	set(newFigures(proof))
	if !slices.Equal(proof.errors, want) {
		t.Errorf("a proof says %q, want %q", proof.errors, want)
	}
	t.Setenv("PROOF", "")
	short := &told{TB: t}
	f := newFigures(short)
	set(f)
	if len(short.errors) > 0 || len(f.by) != 7 {
		t.Errorf("a short measurement says %q, and has %d figures", short.errors, len(f.by))
	}
}
