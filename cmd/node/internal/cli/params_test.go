package cli

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"taskledger/events"
)

func TestParams_ReadNoMoreThanIsRefused(t *testing.T) {
	text, err := (&app{}).params(t.Context(), "@/dev/zero")
	if err != nil || len(text) != events.MaxPayloadBytes+1 {
		t.Errorf("%d bytes were read, %v; want one more than fits", len(text), err)
	}
}

// Nobody writes into the pipe.
func TestParams_ReadingEndsWithTheCommand(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	a := &app{Program: Program{In: in}}
	if _, err := a.params(interrupted, "-"); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	a.access.timeout = time.Millisecond
	if _, err := a.params(t.Context(), "-"); !errors.Is(err, errTimeout) {
		t.Errorf("after --timeout: %v", err)
	}
}
