package input_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/cmd/node/internal/exitcode"
	"taskledger/cmd/node/internal/input"
)

// The size of a file is known, that of a stream is not.
func TestRead_TellsHowLargeWhatDoesNotFitIs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, want string }{
		{file, "parameters: 30 exceeds the limit of 10 bytes"},
		{"-", "parameters: more than 10 bytes, which is the limit"},
	} {
		_, err := input.Read(t.Context(), "parameters", c.file, strings.NewReader(strings.Repeat("x", 30)), 10)
		if exitcode.Of(err) != exitcode.Usage || err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.file, err, c.want)
		}
		if text, err := input.Read(t.Context(), "parameters", c.file, strings.NewReader(strings.Repeat("x", 30)), 30); err != nil || len(text) != 30 {
			t.Errorf("%s: %d bytes, %v", c.file, len(text), err)
		}
	}
	if _, err := input.Read(t.Context(), "parameters", "no-such-file", nil, 10); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("no file: %v", err)
	}
}

func TestRead_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	from, to := io.Pipe()
	defer to.Close()
	over := errors.New("the time is over")
	ctx, end := context.WithCancelCause(t.Context())
	end(over)
	if _, err := input.Read(ctx, "parameters", "-", from, 10); !errors.Is(err, over) {
		t.Errorf("got %v", err)
	}
}
