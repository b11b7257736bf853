//go:build unix

package filejournal_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"taskledger/filestore/filejournal"
	"taskledger/filestore/journal"
)

// openVariable names, for the test that runs as another user, the directory to open.
const openVariable = "FILEJOURNAL_OPEN"

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

// openAsAnother opens the journal in a directory as a user who may not write it, and returns the error as a text.
func openAsAnother(t *testing.T, dir string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		_, err := filejournal.Open(dir, filejournal.Options{})
		if err == nil {
			t.Fatal("it was opened")
		}
		return err.Error()
	}
	program := filepath.Join(entered(t), "program") // the one that runs lies where others may not look
	copyFile(t, os.Args[0], program)
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

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestOpen_AsAnotherUser does nothing but in the process that openAsAnother starts.
func TestOpen_AsAnotherUser(t *testing.T) {
	dir, is := os.LookupEnv(openVariable)
	if !is {
		return
	}
	_, err := filejournal.Open(dir, filejournal.Options{})
	t.Logf("opened with: %v", err)
}

func TestOpen_WithoutPermissionNamesTheDirectoryAndChangesNothing(t *testing.T) {
	dir := entered(t)
	j := open(t, dir, filejournal.Options{})
	if err := errors.Join(j.Append(journal.Entry{Number: 1, Revision: 1, Data: []byte("entry")}), j.Close()); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for _, e := range all {
		name := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(name)
		if err := errors.Join(err, os.Chmod(name, 0o444)); err != nil {
			t.Fatal(err)
		}
		before[name] = string(data)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
	if said := openAsAnother(t, dir); !strings.Contains(said, dir) || !strings.Contains(said, "permission denied") {
		t.Errorf("it says %q", said)
	}
	if after, err := os.ReadDir(dir); err != nil || len(after) != len(all) {
		t.Errorf("there are %d files, and %d were: %v", len(after), len(all), err)
	}
	for name, data := range before {
		if now, err := os.ReadFile(name); err != nil || string(now) != data {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
}
