package command_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

func TestProgress_NoteIsCut(t *testing.T) {
	l := ledgerAt(t, atRunning)
	a, _ := l.decide(&command.Progress{ledgerTask, l.task().Started, "n-1", events.Progressed{Done: 1, Total: 2, Note: strings.Repeat("n", 1000)}})
	if got := l.task().Progress; a.Code != command.AnswerOK || got.Done != 1 || len(got.Note) != events.MaxNameBytes {
		t.Errorf("answer %+v, progress %+v, want the note cut at %d bytes", a, got, events.MaxNameBytes)
	}
}
