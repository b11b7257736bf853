package cli_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/cli"
)

// FuzzInputs gives any settings file and any values to commands that may not ask a cluster, because their time is over:
// they say in a line what is wrong, and what they cannot use is wrong usage.
func FuzzInputs(f *testing.F) {
	f.Add("data: d\nlimit: {exec: 2}\nexec-allow: [sh, date]\nttl: 3s\n", "2026-11-21T18:00:00Z", "a/b")
	f.Add("etcd: [127.0.0.1:1]\nnats: nats://u:p@127.0.0.1:1\n", "yesterday", `{"a":1}`)
	f.Add("a: &a [*a, *a]\n", "", "\x00")
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\noutput: *c\n", "1.2.3", "null")
	f.Add("? [x]\n: {1: 2}\n", "9999-12-31T23:59:59.999999999+23:59", "-")
	over, end := context.WithCancel(context.Background())
	end()
	f.Fuzz(func(t *testing.T, yaml, value, text string) {
		dir := t.TempDir()
		file := filepath.Join(dir, "settings.yaml")
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		text = strings.TrimPrefix(text, "@") // a file of this machine
		for _, args := range [][]string{
			{"list", "--config=" + file, "--status=" + value},
			{"submit", "--at=" + value, "--id=" + text, "--", "noop", text},
			{"state", "--at=" + value, "--", text},
			{"replay", "--since=" + value},
		} {
			var out, problems bytes.Buffer
			code := cli.Main(over, cli.Program{Name: "node", Args: append(args[:1:1], append([]string{"--data=" + dir}, args[1:]...)...),
				In: io.LimitReader(nil, 0), Out: &out, Err: &problems})
			if code == 0 || code > 6 && code != 130 {
				t.Errorf("%q with settings %q: exit code %d", args, yaml, code)
			}
			if problems.Len() == 0 || out.Len() > 0 {
				t.Errorf("%q: printed %q, and said %q", args, out.String(), problems.String())
			}
		}
	})
}
