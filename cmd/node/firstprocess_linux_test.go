package main_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// zombies returns the processes that have ended below a process and that nobody has reaped.
func zombies(t *testing.T, below int) (found []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", below))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		children, _ := os.ReadFile(file) // a thread may have ended
		for _, child := range strings.Fields(string(children)) {
			if stat, err := os.ReadFile("/proc/" + child + "/stat"); err == nil && bytes.Contains(stat, []byte(") Z ")) {
				found = append(found, child)
			}
		}
	}
	return found
}

// The first process of a container is the parent of what programs leave behind there. Needs root, as the tests of CI
// have it, or a kernel that gives users namespaces.
func TestServe_AsTheFirstProcessReapsWhatProgramsLeaveBehindAndPassesSignalsOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := command(context.Background(), dir, "serve", "--store", "files", "--exec-allow", "sh")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	}
	n := start(t, cmd)
	for i := range 3 {
		must(t, dir, "submit", "exec", `{"program":"sh","args":["-c","setsid sh -c 'sleep 0.1' & exit 0"]}`, "--id", fmt.Sprint("leaves-", i), "--wait")
	}
	eventually(t, "what was left behind has ended and is reaped", func() bool {
		return len(zombies(t, n.cmd.Process.Pid)) == 0
	})
	n.signal(syscall.SIGTERM)
	<-n.ended
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("it ends with %d: %s", code, n.stderr.String())
	}
	if text := n.stderr.String(); strings.Contains(text, "Lost") {
		t.Errorf("it did not stop in order: %s", text)
	}
}
