package command_test

import (
	"strings"
	"testing"

	"taskledger/engine/internal/command"
	"taskledger/events"
)

func TestProgress_NoteAboveTheLimitIsRefused(t *testing.T) {
	for n, want := range map[int]command.AnswerCode{events.MaxNameBytes: command.AnswerOK, events.MaxNameBytes + 1: command.AnswerInvalid} {
		l := ledgerAt(t, atRunning)
		a, kinds := l.decide(&command.Progress{ledgerTask, l.task().Started, "n-1", events.Progressed{Done: 1, Total: 2, Note: strings.Repeat("n", n)}})
		recorded := a.Code == command.AnswerOK && l.task().Progress.Done == 1 && len(l.task().Progress.Note) == n
		if a.Code != want || recorded != (kinds != nil) {
			t.Errorf("note of %d bytes: answer %+v with events %v", n, a, kinds)
		}
	}
}
