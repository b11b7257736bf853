//go:build unix

package infiles_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"taskledger/cmd/node/internal/infiles"
	"taskledger/filestore/filelogs"
)

// openVariable names, for the test that runs as another user, the directory to open.
const openVariable = "INFILES_OPEN"

// No file belongs to the user with the id nobody.
const nobody = 65534

// entered makes a directory that every user may enter.
func entered(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "entered")
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// forbid gives a directory to the user nobody, but for a part below it that it may only read, and then writes may not
// be made there by whoever is not root, either.
func forbid(t *testing.T, dir, part string) {
	t.Helper()
	all := slices.Sorted(maps.Keys(contents(t, dir)))
	slices.Reverse(all) // what lies in a directory comes before it
	for _, name := range all {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		owner, mode := nobody, fs.FileMode(0o600)
		if strings.HasPrefix(name, part) {
			owner, mode = 0, 0o444
		}
		if info.IsDir() {
			mode |= 0o111
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(name, owner, owner); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() { _ = os.Chmod(part, 0o700) })
}

// openAsAnother opens a directory as a user who is not root, and returns the error as a text.
func openAsAnother(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		f, err := infiles.Open(dir, infiles.Config{Logs: &filelogs.Config{}})
		if err == nil {
			t.Fatal("it was opened", f.Close())
		}
		return err.Error()
	}
	data, err := os.ReadFile(os.Args[0])
	program := filepath.Join(entered(t), "program") // the one that runs lies where others may not look
	if err := errors.Join(err, os.WriteFile(program, data, 0o755)); err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), program, "-test.run=^TestOpen_AsAnotherUser$", "-test.v")
	test.Env = append(os.Environ(), openVariable+"="+dir)
	test.Dir = "/"
	test.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := test.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestOpen_AsAnotherUser does nothing but in the process that openAsAnother starts.
func TestOpen_AsAnotherUser(t *testing.T) {
	dir, is := os.LookupEnv(openVariable)
	if !is {
		return
	}
	f, err := infiles.Open(dir, infiles.Config{Logs: &filelogs.Config{}})
	if err == nil {
		err = f.Close()
	}
	t.Logf("opened with: %v", err)
}

// Not all of a restored directory belongs to the user of the node.
func TestOpen_NamesAnArchiveOrLogsThatMayNotBeWrittenAndChangesNothing(t *testing.T) {
	for _, name := range []string{"archive", "logs"} {
		dir := filepath.Join(entered(t), "data")
		if err := os.CopyFS(dir, os.DirFS(killed(t))); err != nil {
			t.Fatal(err)
		}
		part := filepath.Join(dir, name)
		forbid(t, dir, part)
		before := contents(t, dir)
		if said := openAsAnother(t, dir); !strings.Contains(said, part) || !strings.Contains(said, "permission denied") {
			t.Errorf("%s may not be written: it says %q", name, said)
		}
		if after := contents(t, dir); !maps.Equal(after, before) {
			t.Errorf("%s may not be written: there are %v, and there were %v, or one was changed", name,
				slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
		}
	}
}
