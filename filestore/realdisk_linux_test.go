package filestore_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/filestore"
	"taskledger/filestore/filejournal"
	"taskledger/internal/testkit"
	"taskledger/store"
)

const (
	// mountVariable names, for the test that runs among mounts of its own, the directory to mount a small disk on.
	mountVariable = "FILESTORE_MOUNT"
	// mustVariable is 1 where the machine has to let a process have mounts of its own, as that of CI has to.
	mustVariable = "MUST_MOUNT"
)

// cannotMount logs that the machine lets nobody mount a disk, which is an error where it has to.
func cannotMount(t *testing.T, err error) {
	t.Helper()
	if os.Getenv(mustVariable) == "1" || testkit.Whole() {
		t.Fatalf("this machine lets no process mount a disk, which it has to: %v", err)
	}
	t.Logf("this machine lets no process mount a disk: %v", err)
}

// A file system of the system that is small, and then read-only, does what the disk of the other tests does. It is
// mounted where the machine lets a process have mounts of its own.
func TestStore_OnARealDiskThatIsFullOrReadOnlyLosesNothing(t *testing.T) {
	if dir, is := os.LookupEnv(mountVariable); is {
		onSmallDisk(t, dir)
		return
	}
	dir := t.TempDir()
	test := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	test.Env = append(os.Environ(), mountVariable+"="+dir)
	test.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
	test.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
	test.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	out, err := test.CombinedOutput()
	if _, ran := errors.AsType[*exec.ExitError](err); err != nil && !ran {
		cannotMount(t, err)
		return
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func mount(t *testing.T, dir string, flags uintptr, size string) {
	t.Helper()
	if err := syscall.Mount("small", dir, "tmpfs", flags, size); err != nil {
		if flags == 0 && errors.Is(err, syscall.EPERM) {
			cannotMount(t, err)
			os.Exit(0)
		}
		t.Fatal(err)
	}
}

func onSmallDisk(t *testing.T, dir string) {
	mount(t, dir, 0, "size=128k")
	o := filejournal.Options{SegmentBytes: 20 << 10}
	s, err := filestore.Open(dir, filestore.Config{Shards: 2}, o)
	if err != nil {
		t.Fatal(err)
	}
	w := own(t, s, 0)
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := w.appendIn(ctx)
		cancel()
		if errors.Is(err, store.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if last := lastOf(t, s); last != w.head.Number || last < 20 {
		t.Errorf("on the full disk the last entry is %d, and %d were answered", last, w.head.Number)
	}
	_ = s.Close() // there may be no room to note that it has ended
	mount(t, dir, syscall.MS_REMOUNT|syscall.MS_RDONLY, "size=128k")
	before := contentsOf(t, dir)
	_, err = filestore.Open(dir, filestore.Config{}, o)
	if !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), dir) {
		t.Errorf("opened on a read-only disk: %v", err)
	}
	if err := filejournal.CheckWrite(dir); !errors.Is(err, syscall.EROFS) {
		t.Errorf("checked on a read-only disk: %v", err)
	}
	reader, err := filestore.OpenToRead(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if last := lastOf(t, reader); last != w.head.Number {
		t.Errorf("on the read-only disk the last entry is %d, and %d were answered", last, w.head.Number)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	if after := contentsOf(t, dir); len(after) != len(before) {
		t.Errorf("on the read-only disk there are %d files, and %d were", len(after), len(before))
	}
	mount(t, dir, syscall.MS_REMOUNT, "size=1m")
	if s, err = filestore.Open(dir, filestore.Config{}, o); err != nil {
		t.Fatal(err)
	}
	again := own(t, s, 0)
	again.fill(20)
	if again.head.Number != w.head.Number+20 {
		t.Errorf("with room again the last entry is %d", again.head.Number)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
