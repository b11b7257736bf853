package cli_test

import (
	"strings"
	"testing"

	"taskledger/cmd/node/internal/cli"
)

func TestStartedAs_IsWhatTheUserTyped(t *testing.T) {
	cached := "/cache/go-build/02/" + strings.Repeat("0a", 32) + "-d/node"
	for _, c := range []struct{ executable, arg0, want string }{
		{"/usr/bin/taskledger", "taskledger", "taskledger"},
		{"/srv/taskledger", "./taskledger", "./taskledger"},
		{"/my programs/taskledger", "/my programs/taskledger", "'/my programs/taskledger'"},
		{"/var/go-build913540018/b001/exe/node", "/var/go-build913540018/b001/exe/node", "go run ./cmd/node"},
		{cached, cached, "go run ./cmd/node"},
	} {
		if got := cli.StartedAs(c.executable, c.arg0); got != c.want {
			t.Errorf("%s: %s, want %s", c.executable, got, c.want)
		}
	}
}
