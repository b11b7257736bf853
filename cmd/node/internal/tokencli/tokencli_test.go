package tokencli_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"taskledger/api/token"
	"taskledger/cmd/node/internal/tokencli"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs the command with a file, and returns what it prints.
func run(t *testing.T, file string, args ...string) string {
	var out bytes.Buffer
	c := (&tokencli.Terminal{Out: &out, JSON: func() bool { return false }, Dir: t.TempDir}).Command(func(*cobra.Command) {})
	c.SetArgs(append(args, "--api-tokens", file))
	if err := c.Execute(); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	return strings.TrimSpace(out.String())
}

// Whoever is told a token has it, whoever else makes or revokes one at that time.
func TestToken_OfManyMadeAtOnceNoneIsLost(t *testing.T) {
	const made = 20
	path := filepath.Join(t.TempDir(), "tokens.json")
	for i := range made {
		run(t, path, "new", fmt.Sprintf("old-%d", i), "--role", "viewer")
	}
	tokens, err := token.Read(path)
	if err != nil || len(tokens) != made {
		t.Fatalf("%d tokens, %v", len(tokens), err)
	}
	var all sync.WaitGroup
	var secrets [made]string
	for i := range made {
		all.Go(func() { secrets[i] = run(t, path, "new", fmt.Sprintf("new-%d", i), "--role", "viewer") })
		all.Go(func() { run(t, path, "revoke", tokens[i].ID) })
	}
	all.Wait()
	f, err := token.Open(path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	for i, secret := range secrets {
		if is := f.Find(secret); is == nil || is.Name != fmt.Sprintf("new-%d", i) {
			t.Errorf("token %d is not known: %+v", i, is)
		}
	}
	if tokens, err := token.Read(path); err != nil || len(tokens) != made {
		t.Errorf("%d tokens, want %d: %v", len(tokens), made, err)
	}
}
