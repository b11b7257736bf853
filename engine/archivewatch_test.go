package engine_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine"
	"taskledger/store"
	"taskledger/store/memarchive"
	"taskledger/task"
)

// inspectable is an archive whose condition a test sets.
type inspectable struct {
	*shelf
	is    atomic.Pointer[store.ArchiveCondition]
	looks atomic.Int64
}

// Inspect implements store.Inspecting.
func (a *inspectable) Inspect(context.Context) (store.ArchiveCondition, error) {
	a.looks.Add(1)
	if err := a.err(); err != nil {
		return store.ArchiveCondition{}, err
	}
	return *a.is.Load(), nil
}

// A node that has nothing to archive learns within a minute that its archive was shortened, and says so once, and as
// long as it is the case.
func TestArchive_ThatIsShortenedWhileNothingHappensIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, book, archive := newModelled(t, true), new(logBook), &inspectable{shelf: newShelf()}
		archive.is.Store(&store.ArchiveCondition{Empty: true})
		a := c.start("a", 0, func(c *cfg) { c.Archive, c.Log = archive, book.logger() }, newJob(task.Policy{}))
		a.ready(t)
		told := func() (problem, shard string, warnings int) {
			v := a.Vitals()
			all, err := a.Operations().Shards(within(t))
			if err != nil {
				t.Fatal(err)
			}
			if told := strings.Contains(strings.Join(v.Degraded(), "; "), v.ArchiveProblem); !told && v.ArchiveProblem != "" {
				t.Errorf("degraded %q", v.Degraded())
			}
			return v.ArchiveProblem, all[0].Degraded, len(book.said(t, "the archive does not keep everything"))
		}
		time.Sleep(3 * time.Minute)
		if problem, shard, warnings := told(); problem != "" || shard != "" || warnings != 0 {
			t.Errorf("of a sound archive: %q, %q, %d warnings", problem, shard, warnings)
		}
		const removes = "it removes messages after 2s"
		archive.is.Store(&store.ArchiveCondition{Empty: true, Problem: removes})
		time.Sleep(61 * time.Second)
		for range 3 {
			if problem, shard, warnings := told(); problem != removes || !strings.HasSuffix(shard, removes) || warnings != 1 {
				t.Errorf("of a shortened archive: %q, %q, %d warnings", problem, shard, warnings)
			}
			time.Sleep(time.Minute)
		}
		archive.away.Store(true) // nothing new is known
		time.Sleep(2 * time.Minute)
		if problem, _, warnings := told(); problem != removes || warnings != 1 {
			t.Errorf("while the archive is away: %q, %d warnings", problem, warnings)
		}
		archive.away.Store(false)
		archive.is.Store(&store.ArchiveCondition{})
		time.Sleep(61 * time.Second)
		if problem, shard, _ := told(); problem != "" || shard != "" || len(book.said(t, "the archive keeps everything again")) != 1 {
			t.Errorf("of an archive that was put right: %q, %q", problem, shard)
		}
		if n := archive.looks.Load(); n > 20 {
			t.Errorf("it was looked at %d times in ten minutes", n)
		}
	})
}

// An archive that was removed is an empty one, as it is before its first segment; what was archived tells them apart.
func TestRun_TellsOfAnArchiveThatWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w engine.ArchiveWatch
		var log bytes.Buffer
		var held atomic.Bool
		a := &inspectable{shelf: newShelf()}
		a.is.Store(&store.ArchiveCondition{Empty: true})
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
			a.is.Store(&store.ArchiveCondition{Empty: step.empty})
			a.away.Store(step.away)
			held.Store(step.held)
			time.Sleep(engine.WatchArchiveEvery)
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
		var w engine.ArchiveWatch
		w.Run(ctx, a, func() bool { return true }, slog.New(slog.DiscardHandler))
		if problem := w.Problem(); problem != "" {
			t.Errorf("it is said %q", problem)
		}
	}
}
