package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"taskledger/filestore/internal/disk"
)

var errKilled = errors.New("killed")

// synced knows which directories a loss of power leaves.
type synced struct {
	root   string
	there  map[string]bool
	killAt int // the sync that is not made any more; 0 = none
	syncs  int
}

func (s *synced) sync(dir string) error {
	if s.syncs++; s.syncs == s.killAt {
		return errKilled
	}
	below, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range below {
		s.there[filepath.Join(dir, e.Name())] = true
	}
	return nil
}

// wantAll asserts that a directory is durable, and all above it below the root.
func (s *synced) wantAll(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	for ; dir != s.root; dir = filepath.Dir(dir) {
		if !s.there[dir] {
			t.Errorf("a loss of power takes %s", dir)
		}
	}
}

func TestMakeDir_IsDurableWithAllAboveWhereverTheOneBeforeWasKilled(t *testing.T) {
	for killAt := range 6 {
		root := t.TempDir()
		s := &synced{root: root, there: map[string]bool{}, killAt: killAt}
		dir := filepath.Join(root, "a", "b", "c")
		err := disk.MakeDirWith(dir, s.sync)
		if killed := errors.Is(err, errKilled); killed != (killAt > 0 && killAt < 5) {
			t.Fatalf("killed at sync %d: %v", killAt, err)
		}
		if err != nil {
			if err := disk.MakeDirWith(dir, s.sync); err != nil {
				t.Fatal(err)
			}
		}
		s.wantAll(t, dir)
	}
}

func TestMakeDir_SyncsNothingAboveADirectoryWithSomethingInIt(t *testing.T) {
	s := &synced{root: t.TempDir(), there: map[string]bool{}}
	if err := os.WriteFile(filepath.Join(s.root, "format"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := disk.MakeDirWith(s.root, s.sync); err != nil || s.syncs != 0 {
		t.Errorf("%d syncs, %v", s.syncs, err)
	}
}

// An empty directory may be one that was mounted, and above it nothing can be written.
func TestMakeDir_TakesAnEmptyDirectoryWhatIsAboveWhichIsForOthers(t *testing.T) {
	for _, why := range []error{fs.ErrPermission, syscall.EROFS, syscall.EINVAL, syscall.ENOTSUP} {
		err := disk.MakeDirWith(t.TempDir(), func(string) error { return &os.PathError{Op: "sync", Path: "/", Err: why} })
		if err != nil {
			t.Error(err)
		}
	}
	err := disk.MakeDirWith(t.TempDir(), func(string) error { return syscall.EIO })
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("a disk that fails: %v", err)
	}
	dir := t.TempDir()
	err = disk.MakeDirWith(filepath.Join(dir, "a"), func(string) error { return syscall.EROFS })
	if !errors.Is(err, syscall.EROFS) {
		t.Errorf("a directory that was made and not synced: %v", err)
	}
}

func TestMakeDir_NamesAFileThatIsInItsPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		var at *fs.PathError
		if err := disk.MakeDir(dir); !errors.As(err, &at) || !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
