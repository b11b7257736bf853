package main_test

import (
	"os/exec"
	"strings"
	"testing"
)

func TestMemory_PrintsWhatItsTaskReturns(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "run", ".").Output()
	if err != nil || string(out) != "hello, Ada <nil>\n" {
		t.Errorf("printed %q, %v", out, err)
	}
}

func TestMemory_LinksNoServer(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	for _, server := range []string{"go.etcd.io/etcd/server", "github.com/nats-io/nats-server"} {
		if err != nil || strings.Contains(string(out), server) {
			t.Errorf("it links %s, or %v", server, err)
		}
	}
}
