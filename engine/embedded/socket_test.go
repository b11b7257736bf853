package embedded_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/engine/embedded"
)

// socketOf returns the path of the socket and the modes of the directory around it.
func socketOf(t *testing.T, s *embedded.Servers) (path string, around fs.FileMode) {
	t.Helper()
	path, found := strings.CutPrefix(s.EtcdEndpoint(), "unix:")
	info, err := os.Stat(filepath.Dir(path))
	if err != nil || !found || !filepath.IsAbs(path) {
		t.Fatalf("etcd listens on %s, %v", s.EtcdEndpoint(), err)
	}
	return path, info.Mode()
}

// Whoever may not enter the directory of a socket cannot connect to it, whatever the modes around it are.
func TestServers_SocketIsInADirectoryThatNoOtherUserEnters(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long ", 25)
	for name, below := range map[string]string{"short": "data", "path of the parser's letters": "a b%2f%zz?c#d:e,@", "too long": long} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp, err := os.MkdirTemp("", "") // shorter than the test's own
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(temp) })
			dir := filepath.Join(temp, below)
			socketDir := filepath.Join(dir, "socket")
			if err := os.MkdirAll(socketDir, 0o777); err != nil { // by whoever
				t.Fatal(err)
			}
			if err := os.Chmod(socketDir, 0o777); err != nil {
				t.Fatal(err)
			}
			s := start(t, embedded.ServersConfig{Dir: dir, NoNATS: true})
			path, around := socketOf(t, s)
			if around.Perm() != 0o700 {
				t.Errorf("%s: modes %v", filepath.Dir(path), around)
			}
			if inside := filepath.Dir(path) == socketDir; inside != (below != long) || len(path) > 100 {
				t.Errorf("socket %s", path)
			}
			put(t, dial(t, s.EtcdEndpoint()), "k", "v")
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left behind: %v", path, err)
			}
			if again, _ := socketOf(t, start(t, embedded.ServersConfig{Dir: dir, NoNATS: true})); again != path {
				t.Errorf("after a restart %s instead of %s", again, path)
			}
		})
	}
}

// Where everybody may make directories another user could take a name that is known, and keep the node from starting.
func TestServers_SocketElsewhereHasANameThatNobodyGuesses(t *testing.T) {
	temp, err := os.MkdirTemp("", "") // shorter than the test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	t.Setenv("TMPDIR", temp)
	dir := filepath.Join(temp, strings.Repeat("long ", 25))
	started := func() (name string) {
		t.Helper()
		s := start(t, embedded.ServersConfig{Dir: dir, NoNATS: true})
		path, around := socketOf(t, s)
		if around.Perm() != 0o700 || filepath.Dir(filepath.Dir(path)) != temp {
			t.Errorf("%s: modes %v", filepath.Dir(path), around)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return filepath.Dir(path)
	}
	first := started()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if second := started(); first == second {
		t.Errorf("other data in the same place has its socket in %s again", first)
	}
	// A directory that cannot be made: another user has taken the name, or what was around it is gone.
	if err := os.WriteFile(filepath.Join(dir, "socket.dir"), []byte(filepath.Join(temp, "gone", filepath.Base(first))), 0o600); err != nil {
		t.Fatal(err)
	}
	started()
}

// A link that somebody has put there would lead the socket elsewhere.
func TestServers_SocketFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, "socket")); err != nil {
		t.Fatal(err)
	}
	start(t, embedded.ServersConfig{Dir: dir, NoNATS: true})
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("made %v there, %v", left, err)
	}
}
