//go:build linux

package token_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/api/token"
)

// written is a file of one token in a directory of its own, and the secret of that.
func written(t *testing.T) (path, secret string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tokens.json")
	secret, k := draw(t, "ci", token.Viewer)
	if err := token.Write(path, []token.Token{k}); err != nil {
		t.Fatal(err)
	}
	return path, secret
}

// Whoever may put a file into the place of the tokens makes himself an admin.
func TestRead_RefusesFilesThatOthersCouldHavePutThere(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"of another user": {func(path string) error { return os.Chown(path, 65534, -1) }, "belongs to user 65534"},
		"of a group":      {func(path string) error { return os.Chmod(path, 0o660) }, "others may write"},
		"in a directory of everybody": {func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) },
			"others may write to the directory"},
		"in a directory as /tmp is": {func(path string) error { return os.Chmod(filepath.Dir(path), 0o777|os.ModeSticky) }, ""},
		"a FIFO": {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) },
			"no regular file"},
		"a directory": {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
			"no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := written(t)
			if err := c.spoil(path); errors.Is(err, os.ErrPermission) {
				t.Logf("not root: %v", err)
				return
			} else if err != nil {
				t.Fatal(err)
			}
			_, err := token.Read(path)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A revoked token is revoked also where the file has the size and the time of the one before.
func TestFile_SeesAChangeThatKeepsSizeAndTime(t *testing.T) {
	path, secret := written(t)
	other, b := draw(t, "ci", token.Viewer)
	synctest.Test(t, func(t *testing.T) {
		f, err := token.Open(path, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := token.Write(path, []token.Token{b}); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if f.Find(secret) != nil || f.Find(other) == nil {
			t.Error("the token of before holds on")
		}
	})
}

// While the file cannot be read, which may take for ever on a file system that hangs, who asks is answered by what was
// known, and the operator is told.
func TestFile_AnswersWhileAReadHangs(t *testing.T) {
	path, secret := written(t)
	synctest.Test(t, func(t *testing.T) {
		var told []string
		f, err := token.Open(path, func(err error) { told = append(told, err.Error()) })
		if err != nil {
			t.Fatal(err)
		}
		free := make(chan struct{})
		token.Hang(f, free)
		for second := range 20 {
			time.Sleep(time.Second)
			began := time.Now()
			var asking sync.WaitGroup
			for range 10 {
				asking.Go(func() {
					if f.Find(secret) == nil {
						t.Errorf("after %d s the token is not known", second)
					}
				})
			}
			asking.Wait()
			if took := time.Since(began); took > time.Second {
				t.Errorf("after %d s an answer took %s", second, took)
			}
		}
		if len(told) != 1 || !strings.Contains(told[0], "has not been read for") {
			t.Errorf("it is told %q", told)
		}
		if err := token.Write(path, nil); err != nil {
			t.Fatal(err)
		}
		close(free)
		time.Sleep(2 * time.Second)
		if f.Find(secret) != nil {
			t.Error("once the file can be read, the change is not seen")
		}
		if len(told) != 1 {
			t.Error(fmt.Sprint(told))
		}
	})
}
