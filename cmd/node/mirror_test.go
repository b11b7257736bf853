package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// netSources returns the directory of the sources of package net, which is there wherever Go is.
func netSources(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src", "net")
}

// tree describes every file and directory below a directory: its mode, time and content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := []byte(nil)
		if d.Type().IsRegular() {
			text, err = os.ReadFile(path)
		}
		all[name] = fmt.Sprintf("%s %s %q", info.Mode(), info.ModTime(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wantEqual asserts that two trees are equal.
func wantEqual(t *testing.T, got, want map[string]string) {
	t.Helper()
	paths := maps.Clone(want)
	maps.Copy(paths, got)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if got[path] != want[path] {
			t.Errorf("%s is %.100s, want %.100s", path, got[path], want[path])
		}
	}
}

// files returns the number of regular files of a tree.
func files(tree map[string]string) (n int) {
	for _, what := range tree {
		if strings.HasPrefix(what, "-") {
			n++
		}
	}
	return n
}

// background is a command that runs beside the test.
type background struct {
	cmd    *exec.Cmd
	stderr lockedBuffer
	ended  chan result
}

func inBackground(t *testing.T, dir string, args ...string) *background {
	t.Helper()
	return inBackgroundWith(t, nil, dir, args...)
}

// inBackgroundWith is inBackground with more variables of the environment.
func inBackgroundWith(t *testing.T, env []string, dir string, args ...string) *background {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*timeout)
	b := &background{cmd: command(ctx, dir, args...), ended: make(chan result, 1)}
	b.cmd.Env = append(b.cmd.Env, env...)
	var out lockedBuffer
	b.cmd.Stdout, b.cmd.Stderr = &out, &b.stderr
	if err := b.cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		_ = b.cmd.Wait() // its exit code says it
		b.ended <- result{b.cmd.ProcessState.ExitCode(), out.String(), b.stderr.String()}
	}()
	t.Cleanup(func() {
		_ = b.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		<-done
	})
	return b
}

// mirrored asserts what a mirror printed, and that it succeeded.
func mirrored(t *testing.T, r result, copied, deleted int) {
	t.Helper()
	if want := fmt.Sprintf("copied %d\ndeleted %d\n", copied, deleted); r.code != 0 || r.out != want {
		t.Errorf("code %d: %q, want %q: %s", r.code, r.out, want, r.err)
	}
}

// countFiles counts the files below a directory that is being filled.
func countFiles(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return nil
	})
	return n
}

func TestMirror_ByThreeProcessesOfWhichOneIsKilledIsEqualAndCountsEachFileOnce(t *testing.T) {
	t.Parallel()
	source, dir := netSources(t), t.TempDir()
	want := tree(t, source)
	first := inBackground(t, dir,
		"mirror", "--data", "m", "--processes", "3", "--workers", "6", "--threads", "1", source, "target")
	eventually(t, "the first process waits for others", func() bool {
		return strings.Contains(first.stderr.String(), "joins with")
	})
	info, err := os.Stat(filepath.Join(dir, "m", "mirror.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mirror.json: %v, %v", info, err)
	}
	second := inBackground(t, dir, "mirror", "--join", "m", source, "target")
	third := inBackground(t, dir, "mirror", "--join", "m", source, "target")
	eventually(t, "the third process has joined, and half of the files are there", func() bool {
		half := countFiles(filepath.Join(dir, "target")) > files(want)/2
		return half && strings.Contains(third.stderr.String(), "one more node")
	})
	if err := third.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := <-third.ended; r.code != -1 {
		t.Fatalf("the third process ended before it was killed: %d %s%s", r.code, r.out, r.err)
	}
	mirrored(t, <-first.ended, files(want), 0)
	mirrored(t, <-second.ended, files(want), 0)
	wantEqual(t, tree(t, filepath.Join(dir, "target")), want)
	if _, err := os.Stat(filepath.Join(dir, "m", "mirror.json")); err == nil {
		t.Error("mirror.json is there when the mirror has ended")
	}
	mirrored(t, run(t, dir, "mirror", "--data", "m", source, "target"), 0, 0)
}

func TestMirror_BeyondMaxDeletesChangesNothing(t *testing.T) {
	t.Parallel()
	source, dir := netSources(t), t.TempDir()
	want := tree(t, source)
	mirrored(t, run(t, dir, "mirror", source, "target"), files(want), 0)
	for i := range 50 {
		write(t, filepath.Join(dir, "target", fmt.Sprint("http/gone", i)), "not in the source any more")
	}
	before := tree(t, filepath.Join(dir, "target"))
	r := run(t, dir, "mirror", "--max-deletes", "10", source, "target")
	if r.code != 1 || !strings.Contains(r.err, "more than 10 files") || !strings.Contains(r.err, "nothing was changed") {
		t.Errorf("code %d: %s%s", r.code, r.out, r.err)
	}
	wantEqual(t, tree(t, filepath.Join(dir, "target")), before)
	mirrored(t, run(t, dir, "mirror", "--max-deletes", "50", source, "target"), 0, 50)
	wantEqual(t, tree(t, filepath.Join(dir, "target")), want)
}

// The first process has the servers: with it the mirror ends everywhere. The next one begins where it was.
func TestMirror_GoesOnWhenTheFirstProcessWasKilled(t *testing.T) {
	t.Parallel()
	source, dir := netSources(t), t.TempDir()
	want := tree(t, source)
	slowly := []string{"mirror", "--data", "m", "--workers", "1", "--threads", "1", source}
	to := func(target string) []string { return append(slices.Clip(slowly), target) }
	first := inBackground(t, dir, to("target")...)
	eventually(t, "a third of the files is there", func() bool {
		return countFiles(filepath.Join(dir, "target")) > files(want)/3
	})
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := <-first.ended; r.code != -1 {
		t.Fatalf("the first process ended before it was killed: %d %s%s", r.code, r.out, r.err)
	}
	other := run(t, dir, to("other")...)
	was := "of which DST was " + filepath.Join(dir, "target") + " and is " + filepath.Join(dir, "other") + " now;"
	if other.code != 2 || !strings.Contains(other.err, "may not have come to its end") ||
		!strings.Contains(other.err, was) {
		t.Errorf("another mirror: code %d: %s%s", other.code, other.out, other.err)
	}
	mirrored(t, run(t, dir, to("target")...), files(want), 0)
	wantEqual(t, tree(t, filepath.Join(dir, "target")), want)
}

// A process may die when it has told the outcome, before it has removed what it wrote for others.
func TestMirror_BeginsAnewThoughTheLastOneDiedJustBehindItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "source", "file"), "text")
	write(t, filepath.Join(dir, "source", "other"), "text")
	first := inBackground(t, dir, "mirror", "--data", "m", "--processes", "2", "source", "target")
	awaitTold(t, first, "the first process waits for others", "joins with")
	at := filepath.Join(dir, "m", "mirror.json")
	left, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	mirrored(t, run(t, dir, "mirror", "--join", "m", "source", "target"), 2, 0)
	mirrored(t, <-first.ended, 2, 0)
	write(t, at, string(left))
	write(t, filepath.Join(dir, "source", "file"), "another text")
	mirrored(t, run(t, dir, "mirror", "--data", "m", "source", "target"), 1, 0)
	wantEqual(t, tree(t, filepath.Join(dir, "target")), tree(t, filepath.Join(dir, "source")))
}

func TestMirror_RefusesWhatCannotBeMirrored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "source", "below", "file"), "text")
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no source":             {[]string{"nothing", "target"}, 2, "nothing"},
		"a file as the source":  {[]string{"source/below/file", "target"}, 2, "no directory"},
		"a file as the target":  {[]string{"source", "source/below/file"}, 2, "no directory"},
		"the source itself":     {[]string{"source", "source/below/.."}, 2, "source/below/.. is the directory source itself"},
		"the same word":         {[]string{"source", "source"}, 2, "source is the directory source itself"},
		"into the source":       {[]string{"source", "source/below/target"}, 2, "into itself"},
		"over the source":       {[]string{"source/below", "source"}, 2, "overwritten"},
		"no mirror to join":     {[]string{"--join", "m", "source", "target"}, 4, "no mirror is under way"},
		"servers in the source": {[]string{"--data", "source/m", "source", "target"}, 2, "the source"},
		"servers in the target": {[]string{"--data", "target/m", "source", "target"}, 2, "the target"},
		"one directory":         {[]string{"source"}, 2, "SRC DST"},
		"many threads":          {[]string{"--threads", "257", "source", "target"}, 2, "--threads 257"},
		"no workers":            {[]string{"--workers", "0", "source", "target"}, 2, "--workers 0"},
		"less than nothing":     {[]string{"--max-deletes", "-1", "source", "target"}, 2, "--max-deletes -1"},
		"joined, and to follow": {[]string{"--join", "m", "--follow", "source", "target"}, 2, "leave out --follow"},
		"joined and first":      {[]string{"--join", "m", "--data", "m", "source", "target"}, 2, "leave out --data"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := run(t, dir, append([]string{"mirror"}, c.args...)...); r.code != c.code || !strings.Contains(r.err, c.says) {
				t.Errorf("code %d, want %d: %s%s", r.code, c.code, r.out, r.err)
			}
		})
	}
	if got := tree(t, dir); files(got) != 1 || len(got) != 4 {
		t.Errorf("something was made: %v", got)
	}
}

func TestMirror_AProcessThatHasJoinedGivesUpWhenTheMirrorIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "source", "file"), "text")
	first := inBackground(t, dir, "mirror", "--data", "m", "--processes", "3", "source", "target") // the third never comes
	eventually(t, "the first process waits for others", func() bool {
		return strings.Contains(first.stderr.String(), "joins with")
	})
	second := inBackground(t, dir, "mirror", "--join", "m", "source", "target")
	eventually(t, "the second process has joined", func() bool {
		return strings.Contains(second.stderr.String(), "one more node")
	})
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if r := <-second.ended; r.code != 4 || !strings.Contains(r.err, "has not answered for ") {
		t.Errorf("code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestMirror_NamesItsTaskAndItsClusterAndTellsItsEndInJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "source", "file"), "text")
	r := run(t, dir, "mirror", "-o", "json", "--data", "m", "source", "target")
	var end struct {
		Task                    string
		Copied, Deleted, Failed *int
	}
	if err := json.Unmarshal([]byte(r.out), &end); err != nil || r.code != 0 {
		t.Fatalf("code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	if *end.Copied != 1 || *end.Deleted != 0 || *end.Failed != 0 {
		t.Errorf("%s", r.out)
	}
	for _, part := range []string{
		end.Task + ": 3 nodes mirror",
		"their cluster is in " + filepath.Join(dir, "m") + "\n",
		"mirror --join " + filepath.Join(dir, "m") + " " + filepath.Join(dir, "source"),
	} {
		if !strings.Contains(r.err, part) {
			t.Errorf("no %q in %s", part, r.err)
		}
	}
}

// left returns the directories that mirrors have left in a directory of temporary files.
func left(t *testing.T, temporary string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestMirror_LeavesNoTemporaryDirectoryButOfAKilledOneWhichTheNextRemoves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "source", "file"), "text")
	temporary, err := os.MkdirTemp("", "m") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temporary) })
	begin := func() *background {
		b := inBackgroundWith(t, []string{"TMPDIR=" + temporary}, dir, "mirror", "--processes", "2", "source", "target")
		eventually(t, "the process waits for another one", func() bool {
			return strings.Contains(b.stderr.String(), "joins with")
		})
		return b
	}
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		b := begin()
		if got := left(t, temporary); len(got) != 1 || !strings.HasPrefix(got[0], "taskledger-mirror-") {
			t.Errorf("while it runs there are %q", got)
		}
		if err := b.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if r := <-b.ended; r.code != 130 {
			t.Errorf("%v: code %d: %s%s", s, r.code, r.out, r.err)
		}
		if got := left(t, temporary); len(got) != 0 {
			t.Errorf("%v: there are %q", s, got)
		}
	}
	killed := begin()
	if err := killed.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-killed.ended
	before := left(t, temporary)
	lives := begin()
	_ = begin() // it removes none of a process that lives
	if got := left(t, temporary); len(before) != 1 || len(got) != 2 || slices.Contains(got, before[0]) {
		t.Errorf("there are %q, and %q was left over", got, before)
	}
	if err := lives.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := <-lives.ended; r.code != 130 {
		t.Errorf("code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestMirror_TellsInJSONWhyItHasNotSucceeded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "source", "file"), "text")
	write(t, filepath.Join(dir, "target", "gone"), "text")
	var e struct {
		Error *struct{ Code, Message string }
	}
	r := run(t, dir, "mirror", "-o", "json", "--max-deletes", "0", "source", "target")
	if err := json.Unmarshal([]byte(r.out), &e); err != nil || r.code != 1 {
		t.Fatalf("code %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	if e.Error == nil || e.Error.Code != "threshold" || !strings.Contains(e.Error.Message, "nothing was changed") {
		t.Errorf("%+v", e.Error)
	}
}

func TestMirror_TellsForHowManyProcessesItWaitsAndWhatAnInterruptLeaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "source", "file"), "text")
	first := inBackground(t, dir, "mirror", "--data", "m", "--processes", "2", "source", "target")
	eventually(t, "it tells that it waits", func() bool {
		return strings.Contains(first.stderr.String(), "\nwaits for 1 more process: ") &&
			strings.Contains(first.stderr.String(), "mirror --join "+filepath.Join(dir, "m"))
	})
	if err := first.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	want := " has not come to its end: it goes on with the same arguments and --data m\n"
	if r := <-first.ended; r.code != 130 || !strings.Contains(r.err, want) {
		t.Errorf("code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestMirror_HelpTellsNoDefaultThatIsNone(t *testing.T) {
	t.Parallel()
	help := must(t, t.TempDir(), "mirror", "--help")
	if strings.Contains(help, "(default )") || strings.Contains(help, "delete (default any number) (") {
		t.Error(help)
	}
}
