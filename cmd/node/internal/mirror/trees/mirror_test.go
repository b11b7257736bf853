package trees_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/work"
)

var deep = strings.Repeat("deep/", 80) + "er"

var cases = map[string]struct {
	source, target forest
	copied         int64
	deleted        int64
}{
	"nothing": {},
	"a new tree": {
		source: forest{
			".":             {dir: true, mode: 0o750},
			"a":             file("one"),
			"empty":         file(""),
			"run":           {text: "#!", mode: 0o755},
			"secret":        {text: "two", mode: 0o400},
			"d/b":           {text: "three", age: 1e9},
			"d":             {dir: true, mode: 0o511},
			"d/e/f/nothing": dir,
		},
		copied: 5,
	},
	"Unicode": {
		source: forest{
			"größe/日本語/é":              file("composed"),
			"größe/日本語/e\u0301":        file("decomposed"),
			"\u202eright to left":      file("3"),
			"two\nlines":               file("4"),
			"no UTF-8: \xff/\xfe":      file("5"),
			" ":                        file("6"),
			"-rf":                      file("7"),
			strings.Repeat("🌲", 63):    file("8"),
			strings.Repeat("n", 255):   file("9"),
			"..a":                      file("10"),
			`back\slash`:               file("11"),
			"ends in .part":            file("12"),
			"x.0123456789abcdef.part":  file("13"),
			".0123456789abcdef.part":   file("14"),
			"0123456789abcdef.part/in": file("15"),
		},
		copied: 15,
	},
	"deep": {
		source: forest{deep: file("deep")},
		target: forest{"deep/deep/x": file("x"), "deep/deep/deep/y/z": dir},
		copied: 1, deleted: 3,
	},
	"links": {
		source: forest{
			"to file":    link("a"),
			"a":          file("a"),
			"to nothing": link("nothing"),
			"out":        link("../../../etc"),
			"away":       link("/etc/passwd"),
			"same":       link("a"),
			"is file":    link("a"),
			"is link":    file("b"),
		},
		target: forest{
			"same":    link("a"),
			"is file": file("a"),
			"is link": link("a"),
			"away":    link("/etc/hosts"),
			"gone":    link("/etc"),
		},
		copied: 7, deleted: 1,
	},
	"other contents, modes and times": {
		source: forest{
			"size": file("longer"),
			"sum":  file("abc"),
			"mode": {text: "a", mode: 0o600},
			"time": {text: "a", age: 1e9},
			"d":    {dir: true, mode: 0o700, age: 1e9},
			"same": file("same"),
		},
		target: forest{
			"size": file("long"),
			"sum":  file("abd"),
			"mode": file("a"),
			"time": file("a"),
			"d":    dir,
			"same": file("same"),
		},
		copied: 2,
	},
	"a file instead of a directory": {
		source: forest{"x": file("x"), "y": link("x")},
		target: forest{"x/a/b": file("b"), "x/c": file("c"), "x/d": dir, "y": dir},
		copied: 2, deleted: 6,
	},
	"a directory instead of a file": {
		source: forest{"x/a/b": file("b"), "y": dir, "z/a": file("a")},
		target: forest{"x": file("x"), "y": link("x"), "z": link("/etc"), "z2": file("z2")},
		copied: 2, deleted: 4,
	},
	"a link to a directory instead of a directory": {
		source: forest{"lib": link("real"), "real/a": file("a")},
		target: forest{"lib/a": file("a"), "lib/b": file("b"), "real/a": file("a")},
		copied: 1, deleted: 3,
	},
	"less": {
		source: forest{"d/a": file("a")},
		target: forest{"d/a": file("a"), "d/b": file("b"), "e/f/g": file("g"), "e/h": dir, "i": {dir: true, mode: 0o555}},
		copied: 0, deleted: 6,
	},
	"left behind": {
		source: forest{
			"a":                          file("whole"),
			"b":                          file("whole"),
			"c":                          file("c"),
			"mine.0123456789abcdef.part": file("of the source"),
		},
		target: forest{
			"a.0123456789abcdef.part":    file("whole"),
			"a.0123456789abcdee.part":    file("whole"),
			"b.0123456789abcdef.part":    file("who"),
			"c.0123456789abcdef.part":    link("c"),
			"gone.0123456789abcdef.part": file("gone"),
			"d/e.0123456789abcdef.part":  file("no directory has it"),
			"c":                          file("c"),
		},
		copied: 3, deleted: 1,
	},
}

func TestMirror_TheTargetBecomesEqualToTheSource(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plant(t, c.source, c.target)
			got := mirror(t, p, trees.Limits{}).sums()
			if want := (trees.Sums{Copied: c.copied, Deleted: c.deleted}); got != want {
				t.Errorf("the run tells %+v, want %+v", got, want)
			}
			wantSame(t, p)
		})
	}
}

func TestMirror_ASecondRunTouchesNothing(t *testing.T) {
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plant(t, c.source, c.target)
			mirror(t, p, trees.Limits{})
			before := stamps(t, p.Target)
			if got := mirror(t, p, trees.Limits{}).sums(); got != (trees.Sums{}) {
				t.Errorf("the second run tells %+v", got)
			}
			if d := differences(stamps(t, p.Target), before); d != "" {
				t.Errorf("the second run touched the target:\n%s", d)
			}
		})
	}
}

func TestMirror_MoreDeletionsThanTheLimitChangeNothing(t *testing.T) {
	for name, c := range cases {
		for limit := max(c.deleted-1, 0); limit <= c.deleted; limit++ {
			t.Run(fmt.Sprint(name, " ", limit), func(t *testing.T) {
				t.Parallel()
				p := plant(t, c.source, c.target)
				before := stamps(t, p.Target)
				r := newRecord()
				_, err := r.attempt(t.Context(), p, trees.Limits{MaxDeletes: &limit}, 0, false)
				if limit == c.deleted {
					if err != nil || r.sums().Deleted != c.deleted {
						t.Errorf("the run tells %+v, %v; want %d deletions", r.sums(), err, c.deleted)
					}
					wantSame(t, p)
					return
				}
				tripped, is := errors.AsType[*work.ThresholdError](err)
				if !is || tripped.Partition != trees.PartitionLimit || tripped.Limit != limit {
					t.Errorf("the run ends with %v, want a threshold at %d", err, limit)
				}
				if d := differences(stamps(t, p.Target), before); d != "" {
					t.Errorf("the run touched the target:\n%s", d)
				}
			})
		}
	}
}

// stamps tells of each entry below a directory which file it is, and how it looks.
func stamps(t *testing.T, root string) map[string]string {
	t.Helper()
	all := mustLook(t, root)
	for at, what := range all {
		var s syscall.Stat_t
		if err := syscall.Lstat(filepath.Join(root, at), &s); err != nil {
			t.Fatal(err)
		}
		all[at] = fmt.Sprint(what, " inode ", s.Ino)
	}
	return all
}

func TestMirror_NothingIsWrittenOutsideOfTheTarget(t *testing.T) {
	outside := t.TempDir()
	if err := (forest{"a": file("a"), "d/b": file("b")}).plant(outside); err != nil {
		t.Fatal(err)
	}
	before := stamps(t, outside)
	p := plant(t, forest{
		"d/b":  file("other"),
		"d/c":  file("new"),
		"e":    dir,
		"file": file("x"),
	}, forest{
		"d":    link(outside + "/d"),
		"e":    link(outside),
		"f":    link(outside),
		"file": link(outside + "/a"),
	})
	mirror(t, p, trees.Limits{})
	wantSame(t, p)
	if d := differences(stamps(t, outside), before); d != "" {
		t.Errorf("something outside of the target changed:\n%s", d)
	}
}

func TestMirror_OtherKindsAreLeftOutAndStay(t *testing.T) {
	p := plant(t, forest{"a": file("a")}, forest{"pipe3/x": file("x")})
	for _, at := range []string{"source/pipe", "source/pipe2", "source/pipe3", "target/pipe2", "target/gone"} {
		if err := syscall.Mkfifo(filepath.Join(p.Source, "..", at), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := mirror(t, p, trees.Limits{})
	if got, want := r.sums(), (trees.Sums{Copied: 1, Deleted: 2}); got != want || r.skipped("copy") != 3 {
		t.Errorf("the run tells %+v and skips %d, want %+v and 3", got, r.skipped("copy"), want)
	}
	all := mustLook(t, p.Target)
	if len(all) != 4 || all["pipe2"] != "p---------" || !strings.HasPrefix(all["pipe3"], "directory") {
		t.Errorf("the target has %v", all)
	}
}

// meddler does something when a partition begins.
type meddler struct {
	*attempt
	at string
	do func() error
}

func (m *meddler) Begin(ctx context.Context, b work.Beginning) error {
	if m.plan.Partitions[b.Partition].ID == m.at {
		if err := m.do(); err != nil {
			return err
		}
	}
	return m.attempt.Begin(ctx, b)
}

// A source that is removed on the way must not look like one without files.
func TestMirror_WithoutItsSourceNothingIsDeleted(t *testing.T) {
	for name, replace := range map[string]func(at string) error{
		"removed":  os.RemoveAll,
		"replaced": func(at string) error { return errors.Join(os.Rename(at, at+" before"), os.Mkdir(at, 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			p := plant(t, forest{"a": file("a")}, forest{"b": file("b")})
			r, pair := newRecord(), open(t, p)
			before := stamps(t, p.Target)
			meddling := &meddler{
				attempt: &attempt{record: r},
				at:      "copy",
				do:      func() error { return replace(p.Source) },
			}
			_, err := pair.Work(trees.Limits{}).Attempt(t.Context(), meddling, p, work.Attempt{})
			if _, is := errors.AsType[*work.ItemsError](err); !is {
				t.Errorf("the run ends with %v", err)
			}
			if d := differences(stamps(t, p.Target), before); d != "" {
				t.Errorf("the run touched the target:\n%s", d)
			}
		})
	}
}

func TestMirror_WhatTheSourceHasAgainStays(t *testing.T) {
	p := plant(t, forest{"a": file("a"), "d": dir}, forest{"a": file("b"), "d": dir})
	for _, at := range []string{"a", "d"} {
		if skipped, err := open(t, p).Delete(t.Context(), at); skipped == "" || err != nil {
			t.Errorf("%s was deleted: %v", at, err)
		}
	}
	if all := mustLook(t, p.Target); len(all) != 3 {
		t.Errorf("the target has %v", all)
	}
}

// writer is a context in which somebody writes to a file of the source as soon as a part of it is there.
type writer struct {
	context.Context
	p    trees.Params
	once sync.Once
}

func (w *writer) Err() error {
	if parts, _ := filepath.Glob(w.p.Target + "/*.part"); len(parts) > 0 {
		w.once.Do(func() { _ = forest{"a": {text: "longer", age: 1e9}}.plant(w.p.Source) })
	}
	return w.Context.Err()
}

func TestMirror_AFileThatChangesWhileItIsCopiedIsCopiedAgain(t *testing.T) {
	p := plant(t, forest{"a": file("short")}, nil)
	r := newRecord()
	if _, err := r.attempt(&writer{Context: t.Context(), p: p}, p, trees.Limits{}, 0, false); err != nil {
		t.Fatal(err)
	}
	if got, want := r.sums(), (trees.Sums{Copied: 1}); got != want {
		t.Errorf("the run tells %+v, want %+v", got, want)
	}
	if is := mustLook(t, p.Target)["a"]; !strings.HasPrefix(is, `file "longer"`) {
		t.Errorf("the copy is %s", is)
	}
	wantSame(t, p)
}

func TestMirror_WhatCannotBeCopiedFailsAloneAndIsNotCounted(t *testing.T) {
	p := plant(t, forest{"a/x": file("x"), "b": file("b")}, forest{"a": file("instead")})
	r, pair := newRecord(), open(t, p)
	meddling := &meddler{
		attempt: &attempt{record: r},
		at:      "copy",
		do:      func() error { return syscall.Mkfifo(p.Target+"/a", 0o600) }, // where a directory belongs
	}
	if _, err := pair.Work(trees.Limits{}).Attempt(t.Context(), meddling, p, work.Attempt{}); err != nil {
		t.Fatal(err)
	}
	if got, want := r.sums(), (trees.Sums{Copied: 1, Deleted: 1, Failed: 2}); got != want {
		t.Errorf("the run tells %+v, want %+v", got, want)
	}
}
