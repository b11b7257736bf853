package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"taskledger/cmd/node/internal/exitcode"
)

func TestParams_ReadNoMoreThanIsRefused(t *testing.T) {
	_, err := (&app{}).params(t.Context(), "noop", "@/dev/zero")
	if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "parameters: more than 262144 bytes") {
		t.Errorf("an endless file: %v", err)
	}
}

func TestSubmit_NamesTheFlagOfATimeTooFarAhead(t *testing.T) {
	now := time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)
	for want, o := range map[string]submitOptions{
		"--at 2050-01-01T00:00:00Z: want ten years ahead at most": {at: "2050-01-01T00:00:00Z"},
		"--delay 87600h0m1s: want ten years at most":              {delay: 87600*time.Hour + time.Second},
	} {
		if _, err := o.options(now); exitcode.Of(err) != exitcode.Usage || err.Error() != want {
			t.Errorf("%+v: %v, want %s", o, err, want)
		}
	}
	for _, o := range []submitOptions{{at: "2036-11-24T00:00:00Z"}, {delay: 87600 * time.Hour}} {
		if _, err := o.options(now); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestParams_SayWhereTheyAreNoJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{"duration":"2s",}`: "parameters: byte 18: invalid character '}' looking for beginning of object key string",
		`{"a":1`:             "parameters: byte 6: unexpected end of JSON input",
		` [1 2]`:             "parameters: byte 5: invalid character '2' after array element",
		`"a`:                 "parameters: byte 2: unexpected end of JSON input",
		`hello`:              `parameters: "hello" is no JSON; a string needs its quotes`,
		`nobody`:             `parameters: "nobody" is no JSON; a string needs its quotes`,
		`2s`:                 `parameters: "2s" is no JSON; a string needs its quotes`,
		``:                   `parameters: "" is no JSON; a string needs its quotes`,
	} {
		_, err := (&app{}).params(t.Context(), "import", text)
		if exitcode.Of(err) != exitcode.Usage || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Nobody writes into the pipe.
func TestParams_ReadingEndsWithTheCommand(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	a := &app{Program: Program{In: in}}
	if _, err := a.params(interrupted, "noop", "-"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	a.access.timeout = time.Millisecond
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{"-", "@" + fifo} {
		if _, err := a.params(t.Context(), "noop", arg); !errors.Is(err, exitcode.ErrTimeout) {
			t.Errorf("%s after --timeout: %v", arg, err)
		}
	}
	if writes, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil { // lets the read go
		writes.Close()
	}
	if text, err := a.params(interrupted, "noop", "1"); string(text) != "1" || err != nil {
		t.Errorf("what needs no reading: %s, %v", text, err)
	}
}
