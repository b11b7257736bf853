package trees_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/cmd/node/internal/mirror/trees"
	"taskledger/work"
	"taskledger/work/workledger"
)

const (
	// fastLag is many times the tick of the times of file systems.
	fastLag   = 100 * time.Millisecond
	fastEvery = time.Millisecond
	// timeout is shorter than the time after which what failed is tried again.
	timeout = 20 * time.Second
)

// tokens is the record of a stream in memory.
type tokens struct {
	mu    sync.Mutex
	token string
	moves int
	items work.Counts
	errs  []work.ItemError
}

func (s *tokens) Position(context.Context) (workledger.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return workledger.Position{Token: s.token}, nil
}

func (s *tokens) Move(_ context.Context, m workledger.Move) (workledger.Moved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves++
	if m.Token != "" {
		s.token = m.Token
	}
	s.items.Done += m.Items.Done
	s.items.Failed += m.Items.Failed
	s.items.Skipped += m.Items.Skipped
	s.errs = append(s.errs, m.Errors...)
	return workledger.Moved{}, nil
}

func (s *tokens) Held(context.Context, int) ([]workledger.HeldChange, error) {
	return nil, errors.New("nothing is held")
}

// at returns the token and the number of moves.
func (s *tokens) at() (token string, moves int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token, s.moves
}

// following is a source that is followed.
type following struct {
	trees.Params
	record *record
	tokens *tokens
	since  time.Time
	limits trees.Limits
	fast   trees.Fast
}

// follows returns a source that is followed from a time on, which comes before the first change.
func follows(p trees.Params, since time.Time) *following {
	return &following{
		Params: p,
		record: newRecord(),
		tokens: &tokens{},
		since:  since,
		limits: trees.Limits{Threads: 3},
		fast: trees.Fast{
			Lag:   fastLag,
			Every: fastEvery,
			Clock: new(clock).tell,
		},
	}
}

// plantFollowed plants two trees, and returns the source as one that is followed since before that: the times of their
// directories differ.
func plantFollowed(t testing.TB, source, target forest) *following {
	t.Helper()
	since := time.Now()
	return follows(plant(t, source, target), since)
}

// attempt makes an attempt in a process of its own, until ctx ends.
func (f *following) attempt(ctx context.Context) error {
	pair, err := trees.Open(f.Params)
	if err != nil {
		return err
	}
	defer pair.Close()
	a := &attempt{record: f.record}
	defer a.end()
	_, err = pair.FollowFast(f.limits, f.fast).Attempt(ctx, a,
		trees.FollowParams{Params: f.Params, Since: f.since}, work.Attempt{Number: 1, Stream: f.tokens})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// clock is the clock of a system, and may be set. Each scan asks for the time when it begins.
type clock struct {
	mu     sync.Mutex
	waits  atomic.Int64  // scans that ask
	ahead  time.Duration // of the clock by which files are stamped
	passed time.Duration // more than has really passed
}

func (c *clock) tell() (wall time.Time, passed time.Duration) {
	c.waits.Add(1)
	defer c.waits.Add(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return now.Add(c.ahead), now.Sub(epoch) + c.passed
}

// hold returns when a scan waits for the time, which it is told after letGo.
func (c *clock) hold(t failing) (letGo func()) {
	c.mu.Lock()
	letGo = sync.OnceFunc(c.mu.Unlock)
	defer func() {
		if c.waits.Load() == 0 {
			letGo()
		}
	}()
	soon(t, func() string {
		if c.waits.Load() == 0 {
			return "no scan begins"
		}
		return ""
	})
	return letGo
}

// start begins an attempt, which stop ends.
func (f *following) start(t failing) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.attempt(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the attempt ended with %v", err)
		}
	}
}

// failing is a test, also one of rapid.
type failing interface {
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// equalSoon waits until the trees are equal.
func (f *following) equalSoon(t failing) {
	soon(t, func() string {
		source, err := look(f.Source)
		if err != nil {
			return err.Error()
		}
		target, err := look(f.Target)
		if err != nil {
			return err.Error()
		}
		return differences(target, source)
	})
}

// soon waits until nothing is wrong.
func soon(t failing, wrong func() string) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(timeout); ; <-tick.C {
		problem := wrong()
		if problem == "" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s:\n%s", timeout, problem)
		}
	}
}

// settled waits until the token tells that what was changed since a time is in the target.
func (f *following) settled(t failing, since time.Time) {
	after := since.Add(-fastLag / 2) // times tick
	soon(t, func() string {
		token, _ := f.tokens.at()
		at, _, _ := strings.Cut(token, "/")
		if is, err := time.Parse(time.RFC3339Nano, at); err != nil || is.Before(after) {
			return "the token is " + token
		}
		return ""
	})
}

func do(t testing.TB, steps ...func() error) {
	t.Helper()
	for _, step := range steps {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFollow_BringsWhateverHasChangedIntoTheTarget(t *testing.T) {
	t.Parallel()
	of := forest{
		"a":         file("one"),
		"b/c":       file("two"),
		"b/d/e":     file("three"),
		"x/same":    file("four"),
		"y/same":    file("five"),
		"link":      link("a"),
		"empty/not": dir,
	}
	write := func(text string) func(string) error {
		return func(at string) error { return os.WriteFile(at, []byte(text), 0o644) }
	}
	for name, change := range map[string]func(at func(string) string) error{
		"a new file":      func(at func(string) string) error { return write("new")(at("b/new")) },
		"another content": func(at func(string) string) error { return write("ONE")(at("a")) },
		"another mode":    func(at func(string) string) error { return os.Chmod(at("b/c"), 0o600) },
		"another time":    func(at func(string) string) error { return os.Chtimes(at("a"), epoch, epoch.Add(-time.Hour)) },
		"a mode of a directory": func(at func(string) string) error {
			return os.Chmod(at("b/d"), 0o711)
		},
		"a mode of the root": func(at func(string) string) error { return os.Chmod(at("."), 0o700) },
		"a new directory":    func(at func(string) string) error { return os.MkdirAll(at("n/e/w"), 0o700) },
		"a deleted file":     func(at func(string) string) error { return os.Remove(at("b/c")) },
		"a deleted tree":     func(at func(string) string) error { return os.RemoveAll(at("b")) },
		"everything gone": func(at func(string) string) error {
			return errors.Join(os.RemoveAll(at("a")), os.RemoveAll(at("b")), os.RemoveAll(at("x")),
				os.RemoveAll(at("y")), os.RemoveAll(at("link")), os.RemoveAll(at("empty")))
		},
		"a renamed file":      func(at func(string) string) error { return os.Rename(at("a"), at("b/a")) },
		"a file over another": func(at func(string) string) error { return os.Rename(at("a"), at("b/c")) },
		"a renamed tree":      func(at func(string) string) error { return os.Rename(at("b"), at("empty/b")) },
		"two trees that change places": func(at func(string) string) error {
			return errors.Join(os.Rename(at("x"), at("z")), os.Rename(at("y"), at("x")), os.Rename(at("z"), at("y")))
		},
		"a tree from outside": func(at func(string) string) error { return os.Rename(at("../other"), at("b/other")) },
		"a tree from outside for another one": func(at func(string) string) error {
			return errors.Join(os.RemoveAll(at("b/d")), os.Rename(at("../other"), at("b/d")))
		},
		"another link": func(at func(string) string) error {
			return errors.Join(os.Remove(at("link")), os.Symlink("b/c", at("link")))
		},
		"a link to a directory": func(at func(string) string) error {
			return errors.Join(os.Rename(at("b"), at("real")), os.Symlink("real", at("b")))
		},
		"a directory for a file": func(at func(string) string) error {
			return errors.Join(os.Remove(at("a")), os.MkdirAll(at("a/b"), 0o755), write("in it")(at("a/b/c")))
		},
		"a file for a directory": func(at func(string) string) error {
			return errors.Join(os.RemoveAll(at("b")), write("a file")(at("b")))
		},
		"a name that is no UTF-8": func(at func(string) string) error { return write("x")(at("no \xff\xfe")) },
		"a long path": func(at func(string) string) error {
			below := strings.Repeat(strings.Repeat("n", 200)+"/", 6)
			return errors.Join(os.MkdirAll(at(below), 0o755), write("deep")(at(below+"file")))
		},
		"a file with the name of a part": func(at func(string) string) error {
			return write("x")(at("b/x.0123456789abcdef.part"))
		},
		"a file that comes and goes": func(at func(string) string) error {
			return errors.Join(write("x")(at("b/brief")), os.Remove(at("b/brief")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := plantFollowed(t, of, of)
			other := forest{"f": file("f"), "g/h": file("h"), "e": file("not three")}
			do(t, func() error { return other.plant(filepath.Join(f.Source, "../other")) })
			stop := f.start(t)
			defer stop()
			since := time.Now()
			do(t, func() error { return change(func(at string) string { return filepath.Join(f.Source, at) }) })
			f.settled(t, since)
			f.equalSoon(t)
			if f.tokens.items.Failed > 0 {
				t.Errorf("failures: %v", f.tokens.errs)
			}
		})
	}
}

// change makes a change that it draws, below a directory. What cannot be done does not matter.
func drawChange(t *rapid.T, root string) {
	names := []string{"a", "b", "c"}
	draw := func() string {
		parts := rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(t, "path")
		return filepath.Join(root, filepath.Join(parts...))
	}
	at := draw()
	switch rapid.IntRange(0, 7).Draw(t, "kind") {
	case 0, 1:
		_ = os.WriteFile(at, []byte(rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "text")), 0o644)
	case 2:
		_ = os.MkdirAll(at, 0o755)
	case 3:
		_ = os.RemoveAll(at)
	case 4, 5:
		_ = os.Rename(at, draw())
	case 6:
		_ = os.Chmod(at, rapid.SampledFrom([]fs.FileMode{0o700, 0o755, 0o744}).Draw(t, "mode"))
	case 7:
		_ = os.Symlink("a", at)
	}
}

func TestFollow_AttemptsThatEndAnywhereLoseNoChange(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		since := time.Now()
		at, err := os.MkdirTemp(root, "")
		must(t, err)
		p := trees.Params{Source: filepath.Join(at, "source"), Target: filepath.Join(at, "target")}
		must(t, os.Mkdir(p.Source, 0o755))
		must(t, os.Mkdir(p.Target, 0o755))
		f := follows(p, since)
		for range rapid.IntRange(1, 3).Draw(t, "attempts") {
			stop := f.start(t)
			for range rapid.IntRange(0, 20).Draw(t, "changes") {
				drawChange(t, p.Source)
			}
			stop()
			for range rapid.IntRange(0, 5).Draw(t, "changes between") {
				drawChange(t, p.Source)
			}
		}
		stop := f.start(t)
		defer stop()
		f.equalSoon(t)
	})
}

// An attempt that moved no token would count as one of many that get nowhere, should it be lost.
func TestFollow_WhileNothingChangesAnAttemptTellsOnceThatItGetsOn(t *testing.T) {
	t.Parallel()
	of := forest{"a": file("one"), "b/c": file("two")}
	f := plantFollowed(t, of, of)
	stop := f.start(t)
	since := time.Now()
	do(t, func() error { return os.WriteFile(filepath.Join(f.Source, "b/c"), []byte("three"), 0o644) })
	f.settled(t, since)
	before, _ := f.tokens.at()
	stop()
	again := f.start(t)
	soon(t, func() string {
		if is, _ := f.tokens.at(); is == before {
			return "the token is still " + is
		}
		return ""
	})
	token, moves := f.tokens.at()
	ticks := 0
	soon(t, func() string { // many scans later
		if ticks++; ticks < 100 {
			return "not yet"
		}
		return ""
	})
	again()
	if is, more := f.tokens.at(); is != token || more > moves+1 {
		t.Errorf("the token is %s after %d moves, and was %s after %d", is, more, token, moves)
	}
}

// failures returns how many changes failed.
func (s *tokens) failures() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.items.Failed
}

// awaitFailure waits until a change has failed.
func (f *following) awaitFailure(t failing) {
	soon(t, func() string {
		if f.tokens.failures() == 0 {
			return "nothing has failed"
		}
		return ""
	})
}

func TestFollow_WhatFailedKeepsTheTokenAndIsTriedAgainByTheNextAttempt(t *testing.T) {
	t.Parallel()
	of := forest{"a": file("one"), "b/c": file("two")}
	f := plantFollowed(t, of, of)
	stop := f.start(t)
	since := time.Now()
	do(t, func() error { return os.WriteFile(filepath.Join(f.Source, "a"), []byte("two"), 0o644) })
	f.settled(t, since)
	do(t, // nobody can enter the directory of the target, and that of the source was not changed
		func() error { return os.RemoveAll(filepath.Join(f.Target, "b")) },
		func() error { return os.Symlink("b", filepath.Join(f.Target, "b")) },
	)
	do(t, func() error { return os.Chmod(filepath.Join(f.Source, "b/c"), 0o600) })
	f.awaitFailure(t)
	do(t, func() error { return os.WriteFile(filepath.Join(f.Source, "a"), []byte("one more"), 0o644) })
	soon(t, func() string {
		if text, _ := os.ReadFile(filepath.Join(f.Target, "a")); string(text) != "one more" {
			return "the rest does not go on"
		}
		return ""
	})
	stop()
	do(t, func() error { return os.Remove(filepath.Join(f.Target, "b")) })
	stop = f.start(t)
	defer stop()
	f.equalSoon(t)
}

// No scan finds what is in the target alone, since the directory of the source was not changed.
func TestFollow_WhatIsBelowADirectoryInThePlaceOfAFileGoesWithIt(t *testing.T) {
	t.Parallel()
	of := forest{"a": file("one"), "b/c": file("two")}
	f := plantFollowed(t, of, of)
	stop := f.start(t)
	defer stop()
	since := time.Now()
	do(t, func() error { return os.WriteFile(filepath.Join(f.Source, "a"), []byte("two"), 0o644) })
	f.settled(t, since)
	do(t,
		func() error { return os.Remove(filepath.Join(f.Target, "b/c")) },
		func() error { return os.MkdirAll(filepath.Join(f.Target, "b/c/d/e"), 0o755) },
		func() error { return os.WriteFile(filepath.Join(f.Target, "b/c/d/f"), []byte("late"), 0o644) },
		func() error { return os.Chmod(filepath.Join(f.Source, "b/c"), 0o600) },
	)
	f.equalSoon(t)
	if failed := f.tokens.failures(); failed != 0 {
		t.Errorf("%d changes failed", failed)
	}
}

// More paths fail than are remembered. Once they do not, the token goes on within the attempt.
func TestFollow_TheTokenGoesOnOnceFewerPathsFailThanAreRemembered(t *testing.T) {
	t.Parallel()
	of := forest{"a": file("one")}
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprint("b/", i))
		of[names[i]] = file("one")
	}
	f := plantFollowed(t, of, of)
	f.fast.Most = 20
	stop := f.start(t)
	defer stop()
	since := time.Now()
	do(t, func() error { return os.WriteFile(filepath.Join(f.Source, "a"), []byte("two"), 0o644) })
	f.settled(t, since)
	bad := filepath.Join(f.Target, "b")
	do(t, // nobody can enter the directory of the target
		func() error { return os.RemoveAll(bad) },
		func() error { return os.Symlink("b", bad) },
	)
	touch := func(mode fs.FileMode) {
		t.Helper()
		for _, name := range names {
			do(t, func() error { return os.Chmod(filepath.Join(f.Source, name), mode) })
		}
	}
	touch(0o600)
	soon(t, func() string {
		if failed := f.tokens.failures(); failed < int64(len(names)) {
			return fmt.Sprint(failed, " have failed")
		}
		return ""
	})
	do(t, func() error { return os.Remove(bad) })
	since = time.Now()
	touch(0o640)
	f.equalSoon(t)
	f.settled(t, since)
}

// A directory of the target that no scan could list may hold what has vanished from the source: the token does not pass
// it, and the first scan that can list it finds that, though the directory of the source has not changed since.
func TestFollow_WhatVanishedGoesOnceTheTargetCanBeReadAgain(t *testing.T) {
	t.Parallel()
	for _, again := range []string{"in the same attempt", "in the next attempt"} {
		t.Run(again, func(t *testing.T) {
			t.Parallel()
			of := forest{"a": file("one"), "b/c/gone": file("two"), "b/c/d/stays": file("three")}
			f := plantFollowed(t, of, of)
			f.fast.Again = fastLag
			var is clock
			f.fast.Clock = is.tell
			stop := f.start(t)
			defer func() { stop() }()
			since := time.Now()
			do(t, func() error { return os.WriteFile(filepath.Join(f.Source, "a"), []byte("two"), 0o644) })
			f.settled(t, since)
			at, away := filepath.Join(f.Target, "b"), f.Target+".away"
			do(t, // a link that leads to itself is in the way to b/c, and b of the source has not changed
				func() error { return os.Rename(at, away) },
				func() error { return os.Symlink("b", at) },
				func() error { return os.Remove(filepath.Join(f.Source, "b/c/gone")) },
			)
			f.awaitFailure(t)
			since = time.Now()
			do(t, func() error { return os.WriteFile(filepath.Join(f.Source, "a"), []byte("three"), 0o644) })
			soon(t, func() string {
				if text, _ := os.ReadFile(filepath.Join(f.Target, "a")); string(text) != "three" {
					return "the rest does not go on"
				}
				return ""
			})
			letGo := is.hold(t) // no scan sees what is between the two
			defer letGo()
			if again == "in the next attempt" {
				letGo()
				stop()
				stop = func() {}
			}
			do(t,
				func() error { return os.Remove(at) },
				func() error { return os.Rename(away, at) },
			)
			letGo()
			if again == "in the next attempt" {
				stop = f.start(t)
			}
			f.equalSoon(t)
			f.settled(t, since)
			if failed := f.tokens.failures(); failed != 1 {
				t.Errorf("%d changes failed, want 1", failed)
			}
		})
	}
}

// Scans of large trees have long pauses between them. What is changed behind a step of the clock looks older than the
// scan before it.
func TestFollow_AClockThatIsSetBackBetweenTwoScansLosesNoChange(t *testing.T) {
	t.Parallel()
	of := forest{"a": file("one"), "b/c": file("two"), "b/gone": file("three")}
	f := plantFollowed(t, of, of)
	const step, apart = time.Minute, 20 * time.Second
	is := clock{ahead: step}
	f.fast.Clock = is.tell
	began := time.Now()
	stop := f.start(t)
	defer stop()
	f.settled(t, began.Add(step-fastLag))
	letGo := is.hold(t)
	defer letGo()
	is.ahead, is.passed = apart, apart
	do(t,
		func() error { return os.WriteFile(filepath.Join(f.Source, "a"), []byte("two"), 0o644) },
		func() error { return os.Remove(filepath.Join(f.Source, "b/gone")) },
	)
	letGo()
	f.equalSoon(t)
}

func TestFollow_DeletesNoMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	of := forest{"a": file("one"), "b": file("two"), "c": file("three")}
	f := plantFollowed(t, of, of)
	most := int64(1)
	f.limits.MaxDeletes = &most
	do(t,
		func() error { return os.Remove(filepath.Join(f.Source, "a")) },
		func() error { return os.Remove(filepath.Join(f.Source, "b")) },
	)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	err := f.attempt(ctx)
	if trip, is := errors.AsType[*work.ThresholdError](err); !is || trip.Counter != trees.CounterDeletes {
		t.Errorf("the attempt ended with %v", err)
	}
	if left := slices.Sorted(maps.Keys(mustLook(t, f.Target))); len(left) != 3 {
		t.Errorf("the target has %q", left)
	}
}

func TestFollow_RemovesThePartsThatAnotherProcessHasLeft(t *testing.T) {
	t.Parallel()
	of := forest{"a": file("one"), "b/c": file("two")}
	f := plantFollowed(t, of, of)
	do(t, func() error {
		return os.WriteFile(filepath.Join(f.Target, "b/c.0123456789abcdef.part"), []byte("tw"), 0o644)
	})
	stop := f.start(t)
	defer stop()
	f.equalSoon(t)
}

func TestFollow_GoesOnAtATimeThatSomebodySets(t *testing.T) {
	t.Parallel()
	f := plantFollowed(t, forest{"a": file("one")}, forest{})
	for token, want := range map[string]string{
		"tomorrow":               "want a time as of RFC 3339",
		"2026-11-29T00:00:00Z/x": "want a time as of RFC 3339",
	} {
		f.tokens.token = token
		if err := f.attempt(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", token, err)
		}
	}
	f.tokens.token = time.Now().Add(-time.Hour).Format(time.RFC3339)
	stop := f.start(t)
	f.equalSoon(t)
	stop()
	do(t, func() error { return os.RemoveAll(filepath.Join(f.Target, "a")) })
	f.tokens.token = time.Now().Add(time.Hour).Format(time.RFC3339) // the clock was set back
	stop = f.start(t)
	defer stop()
	f.equalSoon(t)
}

func TestFollow_ASourceThatIsReplacedEndsTheAttempt(t *testing.T) {
	t.Parallel()
	of := forest{"a": file("one")}
	f := plantFollowed(t, of, forest{})
	do(t, func() error { return os.Chmod(filepath.Join(f.Source, "a"), 0o600) })
	ended := make(chan error, 1)
	go func() { ended <- f.attempt(t.Context()) }()
	f.equalSoon(t)
	do(t,
		func() error { return os.Rename(f.Source, f.Source+".old") },
		func() error { return os.Mkdir(f.Source, 0o755) },
	)
	if err := <-ended; err == nil || !strings.Contains(fmt.Sprint(err), "source") {
		t.Errorf("the attempt ended with %v", err)
	}
	if _, err := os.Stat(filepath.Join(f.Target, "a")); err != nil {
		t.Error(err)
	}
}

// A scan has seen a directory, and opens what has its place by now.
func TestFollow_ADirectoryThatSomethingElseReplacedMeanwhileIsNoFailure(t *testing.T) {
	t.Parallel()
	at := t.TempDir()
	do(t, func() error { return forest{"file": file("text"), "link": link("file")}.plant(at) })
	tree, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for _, name := range []string{"file", "file/below", "link", "link/below", "nothing"} {
		if entries, err := trees.List(tree, name); err != nil || len(entries) > 0 {
			t.Errorf("%s has %v, %v", name, entries, err)
		}
	}
	do(t,
		func() error { return os.RemoveAll(at) },
		func() error { return os.WriteFile(at, nil, 0o600) },
	)
	if _, err := trees.List(tree, "."); err == nil {
		t.Error("a tree that is gone has no error")
	}
}
