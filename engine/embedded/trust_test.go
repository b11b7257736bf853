//go:build unix

package embedded_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/engine/embedded"
)

// Whoever may write the directory could replace the tokens of the API in it.
func TestStartServers_RefusesADirectoryThatEverybodyMayWrite(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s, err := embedded.StartServers(t.Context(), embedded.ServersConfig{Dir: dir, NoNATS: true})
	if err == nil {
		t.Fatal(s.Close())
	}
	if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "everybody may write") {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it has left %v, %v", left, err)
	}
}
