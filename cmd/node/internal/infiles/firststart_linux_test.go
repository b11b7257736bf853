package infiles_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"taskledger/cmd/node/internal/infiles"
	"taskledger/filestore/filelogs"
)

// mountVariable names, for the test that runs among mounts of its own, the directory to mount small disks on.
const mountVariable = "INFILES_MOUNT"

// A first start finds no room for its nth file, or its nth page, and the next one has room. The disks are mounted where
// the machine lets a process have mounts of its own.
func TestOpen_AFirstStartWithoutRoomLeavesADirectoryThatTheNextOneTakes(t *testing.T) {
	if dir, is := os.LookupEnv(mountVariable); is {
		onSmallDisks(t, dir)
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
		t.Logf("this machine lets no process have mounts of its own: %v", err)
		return
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func onSmallDisks(t *testing.T, dir string) {
	const most = 100
	for _, bound := range []struct{ small, large string }{
		{"nr_inodes=%d", "nr_inodes=1000"},
		{"size=%dk", "size=1m"},
	} {
		failed := 0
		for n := 1; ; n++ {
			on := filepath.Join(dir, fmt.Sprint(bound.large, n))
			amount := n
			if bound.large == "size=1m" {
				amount *= os.Getpagesize() >> 10
			}
			if err := os.Mkdir(on, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("small", on, "tmpfs", 0, fmt.Sprintf(bound.small, amount)); errors.Is(err, syscall.EPERM) {
				t.Logf("this machine lets no process mount a disk: %v", err)
				return
			} else if err != nil {
				t.Fatal(err)
			}
			first := start(filepath.Join(on, "data"))
			if first != nil && !errors.Is(first, syscall.ENOSPC) || n == most {
				t.Fatalf(bound.small+": %v", amount, first)
			}
			if err := syscall.Mount("small", on, "tmpfs", syscall.MS_REMOUNT, bound.large); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := start(filepath.Join(on, "data")); err != nil {
					t.Fatalf("after a start with "+bound.small+", which ended with %v: %v", amount, first, err)
				}
			}
			if first == nil {
				break
			}
			failed++
		}
		if failed < 5 {
			t.Errorf("with %s only %d starts failed", bound.small, failed)
		}
	}
}

// start opens a directory and closes it.
func start(dir string) error {
	f, err := infiles.Open(dir, infiles.Config{Logs: &filelogs.Config{}})
	if err != nil {
		return err
	}
	return f.Close()
}
