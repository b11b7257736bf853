package main_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"taskledger/internal/testkit"
)

// followedWithin bounds, where a test may bound a time, how long after the last change a target is equal.
const followedWithin = 10 * time.Second

// glance describes what is below a directory that others change: contents, modes and times, and of links where they
// lead.
func glance(root string) map[string]string {
	all := map[string]string{}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			all[path] = err.Error()
			return nil
		}
		name, _ := filepath.Rel(root, path)
		info, err := d.Info()
		switch {
		case err != nil:
			all[name] = err.Error()
		case d.Type()&fs.ModeSymlink != 0:
			all[name], _ = os.Readlink(path)
		case d.IsDir():
			all[name] = fmt.Sprint(info.Mode(), info.ModTime())
		default:
			text, _ := os.ReadFile(path)
			all[name] = fmt.Sprintf("%s %s %q", info.Mode(), info.ModTime(), text)
		}
		return nil
	})
	return all
}

// equalSoon waits until two trees are equal, and returns how long it took.
func equalSoon(t *testing.T, source, target string) time.Duration {
	t.Helper()
	from := time.Now()
	for deadline := from.Add(timeout); ; <-time.After(50 * time.Millisecond) {
		is, want := glance(target), glance(source)
		if maps.Equal(is, want) {
			return time.Since(from)
		}
		if time.Now().After(deadline) {
			wantEqual(t, is, want)
			t.FailNow()
		}
	}
}

// follow starts a mirror that follows, and waits until it does.
func follow(t *testing.T, dir string, args ...string) *background {
	t.Helper()
	b := inBackground(t, dir, append(append([]string{"mirror", "--follow"}, args...), "source", "target")...)
	eventually(t, "the mirror follows", func() bool {
		return strings.Contains(b.stderr.String(), "until it is interrupted")
	})
	return b
}

func (b *background) kill(t *testing.T) {
	t.Helper()
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := <-b.ended; r.code != -1 {
		t.Fatalf("the process ended before it was killed: %d %s%s", r.code, r.out, r.err)
	}
}

// interrupt interrupts a mirror that follows, and returns what it printed.
func (b *background) interrupt(t *testing.T) result {
	t.Helper()
	if err := b.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	return <-b.ended
}

// shuffle makes a random change below a directory. Some cannot be made, as those of a directory into itself.
func shuffle(r *rand.Rand, root string) {
	draw := func() string {
		at := root
		for range 1 + r.IntN(3) {
			at = filepath.Join(at, fmt.Sprint("n", r.IntN(6)))
		}
		return at
	}
	at := draw()
	switch r.IntN(10) {
	case 0, 1, 2, 3:
		_ = os.MkdirAll(filepath.Dir(at), 0o755)
		_ = os.WriteFile(at, fmt.Append(nil, r.Uint64()), 0o644)
	case 4:
		_ = os.MkdirAll(at, 0o755)
	case 5:
		_ = os.RemoveAll(at)
	case 6, 7:
		_ = os.Rename(at, draw())
	case 8:
		_ = os.Chmod(at, 0o700|fs.FileMode(r.IntN(0o100)))
	case 9:
		_ = os.Symlink("n1", at)
	}
}

func TestMirror_ThatFollowsIsEqualSoonAfterTheLastChangeThoughItsNodesAreKilledTwice(t *testing.T) {
	t.Parallel()
	dir, r := t.TempDir(), testkit.Rand(t)
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	write(t, filepath.Join(source, "n1", "file"), "text")
	first := follow(t, dir, "--data", "m", "--threads", "3")
	changes := testkit.Times(100, 1_000)
	for i := range changes {
		shuffle(r, source)
		if i == changes/3 || i == 2*changes/3 {
			first.kill(t)
			shuffle(r, source) // while nobody follows
			first = follow(t, dir, "--data", "m", "--threads", "3")
		}
	}
	took := equalSoon(t, source, target)
	t.Logf("equal %s after the last change", took)
	if testkit.Whole() && took > followedWithin {
		t.Errorf("equal %s after the last change, want %s", took, followedWithin)
	}
	if got := first.interrupt(t); got.code != 0 || !strings.HasPrefix(got.out, "copied ") {
		t.Errorf("code %d: %s%s", got.code, got.out, got.err)
	}
	shuffle(r, source)
	follow(t, dir, "--data", "m", "--threads", "3")
	equalSoon(t, source, target)
}

// whereRuns returns the node that follows, "" if none does.
func whereRuns(t *testing.T, dir, task string) string {
	t.Helper()
	var of struct{ Status, Node string }
	if err := json.Unmarshal([]byte(must(t, dir, "get", "--data", "m", "-o", "json", task)), &of); err != nil {
		t.Fatal(err)
	}
	if of.Status != "RUNNING" {
		return ""
	}
	name, _, _ := strings.Cut(of.Node, " ")
	return name
}

// crew is a mirror of several processes that follows.
type crew struct {
	first  *background
	others map[string]*background // by their nodes
	task   string                 // follows
}

// crewOf starts a mirror of four processes in a directory, and waits until it follows.
func crewOf(t *testing.T, dir, target string) *crew {
	t.Helper()
	c := &crew{others: map[string]*background{}}
	c.first = inBackground(t, dir, "mirror", "--follow", "--data", "m", "--processes", "4", "source", target)
	eventually(t, "the first process waits for others", func() bool {
		return strings.Contains(c.first.stderr.String(), "joins with")
	})
	for range 3 {
		b := inBackground(t, dir, "mirror", "--join", "m", "source", target)
		c.others[fmt.Sprint("p", b.cmd.Process.Pid)] = b
	}
	for _, b := range append(slices.Collect(maps.Values(c.others)), c.first) {
		eventually(t, "a process follows", func() bool {
			return strings.Contains(b.stderr.String(), "until it is interrupted")
		})
	}
	name, _, _ := strings.Cut(c.first.stderr.String(), ":")
	c.task = name + "-follow"
	return c
}

// end interrupts the first process, and asserts that it and all others tell the same.
func (c *crew) end(t *testing.T, want string) {
	t.Helper()
	got := c.first.interrupt(t)
	if got.code != 0 || got.out != want {
		t.Errorf("code %d: %q, want %q: %s", got.code, got.out, want, got.err)
	}
	for name, b := range c.others {
		if r := <-b.ended; r.code != 0 || r.out != want {
			t.Errorf("%s: code %d: %q, want %q: %s", name, r.code, r.out, want, r.err)
		}
	}
}

func TestMirror_ThatFollowsGoesOnWhenOneOfItsProcessesIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	write(t, filepath.Join(source, "file"), "text")
	c := crewOf(t, dir, "target")
	var runs string
	eventually(t, "somebody follows", func() bool {
		runs = whereRuns(t, dir, c.task)
		return runs != ""
	})
	if c.others[runs] == nil { // the name of the task, which is drawn, decides it: then another one that might is killed
		runs = slices.Sorted(maps.Keys(c.others))[0]
	}
	write(t, filepath.Join(source, "new", "file"), "more")
	equalSoon(t, source, target)
	write(t, filepath.Join(source, "new", "another"), "text")
	c.others[runs].kill(t)
	delete(c.others, runs)
	if err := os.Remove(filepath.Join(source, "file")); err != nil {
		t.Fatal(err)
	}
	equalSoon(t, source, target)
	if is := whereRuns(t, dir, c.task); is == runs {
		t.Errorf("%s still follows, and was killed", is)
	}
	c.end(t, "copied 3\ndeleted 1\n")
}

// awaitTold waits until a process has told something.
func awaitTold(t *testing.T, b *background, what, text string) {
	t.Helper()
	eventually(t, what, func() bool { return strings.Contains(b.stderr.String(), text) })
}

// The first process has the servers. Whoever has joined waits for half a minute until another one has them, and goes on
// with it.
func TestMirror_ThatFollowsIsTakenOverByAnotherFirstProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	write(t, filepath.Join(source, "file"), "text")
	first := follow(t, dir, "--data", "m")
	joined := inBackground(t, dir, "mirror", "--join", "m", "source", "target")
	awaitTold(t, joined, "the other process follows", "until it is interrupted")
	write(t, filepath.Join(source, "new", "file"), "more")
	equalSoon(t, source, target)
	for i := range 2 {
		first.kill(t)
		write(t, filepath.Join(source, fmt.Sprint("while nobody follows ", i)), "text")
		first = follow(t, dir, "--data", "m")
		equalSoon(t, source, target)
		write(t, filepath.Join(source, fmt.Sprint("later ", i)), "text")
		equalSoon(t, source, target)
	}
	got := first.interrupt(t)
	if got.code != 0 || !strings.HasPrefix(got.out, "copied ") {
		t.Errorf("code %d: %s%s", got.code, got.out, got.err)
	}
	switch r := <-joined.ended; {
	case r.code == 0 && r.out == got.out:
	case r.code == 4 && strings.Contains(r.err, "has not answered for "): // the new one took long to start
	default:
		t.Errorf("who has joined: code %d: %s%s, want %s", r.code, r.out, r.err, got.out)
	}
}

// Of what a process waits for that has joined nothing ever begins: whoever had begun it is gone, and its directory has
// another mirror.
func TestMirror_AProcessThatHasJoinedGivesUpWhenAnotherMirrorIsInTheDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "source", "file"), "text")
	first := func(target string) *background {
		b := inBackground(t, dir, "mirror", "--data", "m", "--processes", "3", "source", target) // the third never comes
		awaitTold(t, b, "the first process waits for others", "joins with")
		return b
	}
	killed := first("target")
	joined := inBackground(t, dir, "mirror", "--join", "m", "source", "target")
	awaitTold(t, joined, "another process has joined", "one more node")
	killed.kill(t)
	if err := os.Remove(filepath.Join(dir, "m", "mirror.json")); err != nil {
		t.Fatal(err)
	}
	first("other")
	if r := <-joined.ended; r.code != 4 || !strings.Contains(r.err, "mirror is gone") && !strings.Contains(r.err, "has not answered for ") {
		t.Errorf("code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestMirror_ThatFollowsEndsWithItsCountsAndStopsBeyondMaxDeletes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	for i := range 5 {
		write(t, filepath.Join(source, fmt.Sprint("file", i)), "text")
	}
	b := follow(t, dir, "-o", "json", "--max-deletes", "2")
	if err := os.Remove(filepath.Join(source, "file0")); err != nil {
		t.Fatal(err)
	}
	equalSoon(t, source, target)
	for i := range 4 {
		if err := os.Remove(filepath.Join(source, fmt.Sprint("file", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	var end struct {
		Copied, Deleted int
		Error           struct{ Code string }
	}
	r := <-b.ended
	if err := json.Unmarshal([]byte(r.out), &end); err != nil || r.code != 1 {
		t.Fatalf("code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	if end.Copied != 5 || end.Deleted != 2 || end.Error.Code != "threshold" {
		t.Errorf("%s", r.out)
	}
	if left := slices.Sorted(maps.Keys(glance(target))); len(left) != 1+3 {
		t.Errorf("the target has %q", left)
	}
}
