package archivewatch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"taskledger/engine/internal/archivewatch"
	"taskledger/store"
	"taskledger/store/memarchive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kept lets an Archive be embedded, whose method of that name a field would hide.
type kept = memarchive.Archive

// inspectable is an archive whose condition a test sets.
type inspectable struct {
	*kept
	empty, away atomic.Bool
}

// Inspect implements store.Inspecting.
func (a *inspectable) Inspect(context.Context) (store.ArchiveCondition, error) {
	if a.away.Load() {
		return store.ArchiveCondition{Empty: true}, errors.New("the archive is away")
	}
	return store.ArchiveCondition{Empty: a.empty.Load()}, nil
}

// An archive that was removed is an empty one, as it is before its first segment; what was archived tells them apart.
func TestRun_TellsOfAnArchiveThatWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w archivewatch.Watch
		var log bytes.Buffer
		var held atomic.Bool
		a := &inspectable{kept: memarchive.New()}
		a.empty.Store(true)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.Run(ctx, a, held.Load, slog.New(slog.NewTextHandler(&log, nil)))
		}()
		for _, step := range []struct {
			name              string
			empty, held, away bool
			problem           string
			lines             int
		}{
			{"before the first segment", true, false, false, "", 0},
			{"in use", false, true, false, "", 0},
			{"away", true, true, true, "", 0},
			{"removed", true, true, false, "it was removed", 1},
			{"still removed", true, true, false, "it was removed", 1},
			{"away again", false, true, true, "it was removed", 1},
			{"restored", false, true, false, "", 2},
		} {
			a.empty.Store(step.empty)
			a.away.Store(step.away)
			held.Store(step.held)
			time.Sleep(archivewatch.Every)
			synctest.Wait()
			if problem := w.Problem(); (problem == "") != (step.problem == "") || !strings.Contains(problem, step.problem) {
				t.Errorf("%s: %q, want %q", step.name, problem, step.problem)
			}
			if lines := strings.Count(log.String(), "\n"); lines != step.lines {
				t.Errorf("%s: %d lines, want %d: %s", step.name, lines, step.lines, log.String())
			}
		}
		stop()
		<-ended
	})
}

// An archive that nobody can look at, such as one of a test, is left alone until the session ends.
func TestRun_LeavesAloneWhatCannotBeLookedAt(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, a := range []store.Archive{nil, memarchive.New()} {
		var w archivewatch.Watch
		w.Run(ctx, a, func() bool { return true }, slog.New(slog.DiscardHandler))
		if problem := w.Problem(); problem != "" {
			t.Errorf("it is said %q", problem)
		}
	}
}
