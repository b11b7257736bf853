package cli

import (
	"bytes"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/exitcode"
)

// Wrong usage is told in the words of the help, with the help to look at, however the program was started.
func TestMain_NamesWhatWrongUsageShouldHaveBeen(t *testing.T) {
	t.Parallel()
	const name = "go run ./cmd/node"
	for _, c := range []struct{ typed, said, see string }{
		{"submit", "submit: want BEHAVIOR [JSON|@FILE|-], got 0 arguments", " submit --help"},
		{"submit a b c", "got 3 arguments", " submit --help"},
		{"state a b", "state: want ID, got 2 arguments", " state --help"},
		{"cancel", "cancel: want ID..., got 0 arguments", " cancel --help"},
		{"verify a b", "verify: want [FILE], got 2 arguments", " verify --help"},
		{"checkpoint new-key", "new-key: want FILE, got 0 arguments", " checkpoint new-key --help"},
		{"schedule backfill x", "backfill: want NAME FROM TO, got 1 argument", " schedule backfill --help"},
		{"serve --concurrency sleep=x", "want behavior=N,... with whole numbers", " serve --help"},
		{"serve --log-level loud", "want debug, info, warn or error", " serve --help"},
		{"list --log-level loud", "want debug, info, warn or error", " list --help"},
		{"list --limit many", "--limit many: want a whole number", " list --help"},
		{"list --timeout soon", "--timeout soon: want a duration such as 90s", " list --help"},
		{"state x --seq -1", "--seq -1: want a whole number from 0 on", " state --help"},
		{"serve --timeout 5s", "unknown flag: --timeout", " serve --help"},
		{"--timeout 5s", "unknown flag: --timeout", " --help"},
	} {
		var out, problems bytes.Buffer
		code := Main(t.Context(), Program{Name: name, Args: strings.Fields(c.typed), In: strings.NewReader(""), Out: &out, Err: &problems})
		if said := problems.String(); code != exitcode.Usage || !strings.Contains(said, c.said) || !strings.HasSuffix(said, "see: "+name+c.see+"\n") ||
			strings.Contains(said, "strconv") || out.Len() > 0 {
			t.Errorf("%s: exit code %d, said %q, want %q", c.typed, code, said, c.said)
		}
	}
}
