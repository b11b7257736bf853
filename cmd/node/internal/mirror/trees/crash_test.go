package trees_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/work"
)

// drawForest draws what is below a directory. The names are few, so that two forests have the same ones for different
// things.
func drawForest(t *rapid.T, label string) forest {
	f := forest{".": drawNode(t, label, true)}
	f.draw(t, label, "", 3)
	return f
}

func (f forest) draw(t *rapid.T, label, below string, depth int) {
	names := []string{"a", "b", "ä", "c d", "a.0123456789abcdef.part", "b.0123456789abcdee.part"}
	for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, label) {
		n := drawNode(t, label, false)
		if depth == 1 || strings.HasSuffix(name, ".part") {
			n.dir = false
		}
		f[below+name] = n
		if n.dir {
			f.draw(t, label, below+name+"/", depth-1)
		}
	}
}

func drawNode(t *rapid.T, label string, dir bool) (n node) {
	if kind := rapid.IntRange(0, 5).Draw(t, label); dir || kind < 2 {
		n.dir, n.mode = true, rapid.SampledFrom([]os.FileMode{0o700, 0o755, 0o555}).Draw(t, label)
	} else if kind == 2 {
		n.link = rapid.SampledFrom([]string{"a", "b", "../a", "/nowhere"}).Draw(t, label)
	} else {
		n.text = rapid.SampledFrom([]string{"", "one", "two", "three"}).Draw(t, label)
		n.mode = rapid.SampledFrom([]os.FileMode{0o600, 0o644, 0o444}).Draw(t, label)
	}
	n.age = rapid.SampledFrom([]time.Duration{0, 1e9}).Draw(t, label)
	return n
}

// expect returns what a run has to tell, from the two trees as they are before it.
func expect(source, target map[string]string) (s trees.Sums) {
	content := func(of string) string { // without mode and time
		if strings.HasPrefix(of, "file") {
			of = of[:strings.LastIndex(of, `"`)]
		}
		return of
	}
	isDir := func(of string) bool { return strings.HasPrefix(of, "directory") }
	for at, is := range source {
		if !isDir(is) && content(is) != content(target[at]) {
			s.Copied++
		}
	}
	for at, is := range target {
		other, both := source[at]
		part := strings.HasSuffix(at, ".part") && !isDir(is)
		if !part && (!both || isDir(is) != isDir(other)) {
			s.Deleted++
		}
	}
	return s
}

// A process dies with a call to the record, which has heard of it or not, again and again: with a permit, so right
// before the change, or with a report, so behind all changes of a bucket.
func TestMirror_ProcessesThatDieChangeNeitherTheTreeNorTheCounts(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		must(t, err)
		p := trees.Params{Source: filepath.Join(dir, "source"), Target: filepath.Join(dir, "target")}
		must(t, drawForest(t, "source").plant(p.Source))
		must(t, drawForest(t, "target").plant(p.Target))
		source, err := look(p.Source)
		must(t, err)
		target, err := look(p.Target)
		must(t, err)
		want := expect(source, target)
		limits := trees.Limits{}
		if rapid.Bool().Draw(t, "limited") {
			limits.MaxDeletes = &want.Deleted
		}
		r := newRecord()
		for _, dies := range rapid.SliceOfN(rapid.IntRange(1, 80), 0, 8).Draw(t, "dies") {
			state, err := r.attempt(context.Background(), p, limits, dies, rapid.Bool().Draw(t, "tells"))
			if err != nil && !errors.Is(err, errDead) {
				t.Fatal(err)
			}
			if state == work.Finished {
				break
			}
		}
		if _, err := r.attempt(context.Background(), p, limits, 0, false); err != nil {
			t.Fatal(err)
		}
		if got := r.sums(); got != want {
			t.Errorf("the run tells %+v, want %+v", got, want)
		}
		target, err = look(p.Target)
		must(t, err)
		if d := differences(target, source); d != "" {
			t.Errorf("the target differs from the source:\n%s", d)
		}
	})
}

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// late does something once, after the first permit has been granted and before it is told.
type late struct {
	*attempt
	do func() error
}

func (l *late) Permit(ctx context.Context, ask work.Ask) (bool, error) {
	granted, err := l.attempt.Permit(ctx, ask)
	if do := l.do; do != nil {
		l.do = nil
		err = errors.Join(err, do())
	}
	return granted, err
}

// A process that was taken for dead, and whose buckets others have worked on, goes on where it was.
func TestMirror_AProcessThatWasTakenForDeadHarmsNothing(t *testing.T) {
	p := plant(t, forest{"a": file("a"), "b": file("b")}, forest{"c": file("c"), "a": file("b")})
	r, pair := newRecord(), open(t, p)
	lost := &late{attempt: &attempt{record: r}}
	lost.do = func() error {
		lost.end()
		state, err := r.attempt(t.Context(), p, trees.Limits{}, 0, false)
		if state != work.Finished {
			t.Errorf("the other process ends with %v", state)
		}
		lost.dies = 1 // every further call is refused
		return err
	}
	if _, err := pair.Work(trees.Limits{}).Attempt(t.Context(), lost, p, work.Attempt{}); !errors.Is(err, errDead) {
		t.Errorf("the process that was lost ends with %v", err)
	}
	if got, want := r.sums(), (trees.Sums{Copied: 2, Deleted: 1}); got != want {
		t.Errorf("the run tells %+v, want %+v", got, want)
	}
	wantSame(t, p)
}

// Each of the runs takes the parts of the others for leftovers, so that some of their copies fail.
func TestMirror_RunsSideBySideEndInTheSameTree(t *testing.T) {
	c := cases["Unicode"]
	p := plant(t, c.source, forest{"x/y": file("gone")})
	var g errgroup.Group
	for range 4 {
		g.Go(func() error {
			_, err := newRecord().attempt(t.Context(), p, trees.Limits{Threads: 3}, 0, false)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	mirror(t, p, trees.Limits{})
	wantSame(t, p)
}

func TestMirror_WorkersShareTheBucketsAndCountEachItemOnce(t *testing.T) {
	source := forest{}
	for i := range 500 {
		at := filepath.Join(string(rune('a'+i%26)), strings.Repeat("x", i%17), string(rune('0'+i)))
		source[at] = file(strings.Repeat("y", i))
	}
	p := plant(t, source, forest{"gone/1": file("1"), "gone/2": file("2")})
	r := newRecord()
	var g errgroup.Group
	for range 5 {
		g.Go(func() error { return r.work(t.Context(), p, trees.Limits{Workers: 5, Threads: 3}) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := r.sums(), (trees.Sums{Copied: int64(len(source)), Deleted: 3}); got != want {
		t.Errorf("the run tells %+v, want %+v", got, want)
	}
	wantSame(t, p)
}
