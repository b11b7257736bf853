package worker_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
)

// logged is the log of the attempts that launchLogged makes.
var logged = tasklog.Attempt{Shard: 0, Life: events.RefOf(7, 1), Number: 1}

// launchLogged makes an attempt of the life of logged.
func (w *fixture) launchLogged(behavior string, policy task.Policy) events.Ref {
	w.Helper()
	return w.assign(command.Assignment{Behavior: behavior, Policy: policy, Life: logged.Life})
}

// kept returns the lines of a log, with their levels.
func kept(t *testing.T, from tasklog.Reader) (lines []string) {
	t.Helper()
	got, err := from.Read(t.Context(), logged, tasklog.Range{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range got.Batches {
		for i, l := range b.Lines {
			lines = append(lines, fmt.Sprintf("%d %s %s", b.First+uint64(i), l.Level, l.Text))
		}
	}
	return lines
}

// shut is a store that takes nothing until it is opened.
type shut struct {
	*memlog.Store
	calls atomic.Int64
	open  chan struct{}
}

func newShut() *shut { return &shut{Store: memlog.New(), open: make(chan struct{})} }

// Append implements tasklog.Store.
func (s *shut) Append(
	ctx context.Context, of tasklog.Attempt, after tasklog.End, b tasklog.Batch,
) (tasklog.End, error) {
	s.calls.Add(1)
	select {
	case <-s.open:
		return s.Store.Append(ctx, of, after, b)
	case <-ctx.Done():
		return tasklog.End{}, fmt.Errorf("%w: %w", store.ErrUnavailable, ctx.Err())
	}
}

// whatever is a behavior "b" that does what a test says.
func whatever(do func(ctx context.Context, a task.Attempt)) task.Behavior {
	return &script{"b", func(ctx context.Context, a task.Attempt) task.Outcome {
		do(ctx, a)
		return task.Outcome{}
	}}
}

// inBubble runs a test with a worker whose store of logs is shut.
func inBubble(t *testing.T, do func(context.Context, task.Attempt), test func(t *testing.T, w *fixture, logs *shut)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		logs := newShut()
		test(t, newLogged(t, logs, 1, nil, whatever(do)), logs)
	})
}

func TestLog_OfAnAttemptHasWhatItLogsAndWrites(t *testing.T) {
	do := func(_ context.Context, a task.Attempt) {
		a.Log.Debug("too little")
		a.Log.Info("two\nlines", "n", 1)
		a.Log.With("k", "v").WithGroup("g").Warn("named", "n", 2)
		a.Log.Error("wrong")
		fmt.Fprintln(a.Output(slog.LevelWarn, false), "by hand")
		fmt.Fprint(a.Output(slog.LevelError, true), "no end")
	}
	inBubble(t, do, func(t *testing.T, w *fixture, logs *shut) {
		close(logs.open)
		w.launchLogged("b", task.Policy{})
		synctest.Wait()
		w.outcome()
		w.wantLeft(time.Minute, 0, 0)
		w.stopped = true
		w.logs.Stop(time.Minute)
		want := []string{
			"1 info two", "2 info lines n=1", "3 info named k=v g.n=2", "4 error wrong", "5 info by hand", "6 error no end",
		}
		if got := kept(t, logs); !slices.Equal(got, want) {
			t.Errorf("the log has %q, want %q", got, want)
		}
	})
}

// The node's log has its own level, and names the attempt.
func TestLog_OfTheNodeIsWhatItIsWithoutLogsOfAttempts(t *testing.T) {
	do := func(_ context.Context, a task.Attempt) {
		a.Log.Info("quiet")
		a.Log.With("k", "v").Warn("loud")
	}
	for name, life := range map[string]events.Ref{"without": 0, "with": logged.Life} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, do, func(t *testing.T, w *fixture, _ *shut) {
				var text strings.Builder
				w.log.Handler = slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn})
				w.assign(command.Assignment{Behavior: "b", Life: life})
				<-w.inbox.woken
				w.outcome()
				if got := text.String(); strings.Contains(got, "quiet") ||
					!strings.HasSuffix(got, " msg=loud k=v task=a behavior=b attempt=1\n") {
					t.Errorf("the node has logged %q", got)
				}
			})
		})
	}
}

func TestLog_OfAnAttemptThatWritesNothingCostsNothing(t *testing.T) {
	do := func(_ context.Context, a task.Attempt) {
		a.Output(slog.LevelInfo, true)
		a.Log.With("k", "v").Debug("nothing")
	}
	inBubble(t, do, func(t *testing.T, w *fixture, logs *shut) {
		w.launchLogged("b", task.Policy{})
		synctest.Wait()
		w.outcome()
		if n := logs.calls.Load(); n != 0 {
			t.Errorf("the store was asked %d times", n)
		}
	})
}

// An owner of an earlier release does not tell the life of a task.
func TestLog_OfAnUnknownLifeIsNotKept(t *testing.T) {
	do := func(_ context.Context, a task.Attempt) {
		a.Log.Info("logged")
		fmt.Fprintln(a.Output(slog.LevelInfo, true), "written")
	}
	inBubble(t, do, func(t *testing.T, w *fixture, logs *shut) {
		w.launch("b", task.Policy{})
		synctest.Wait()
		w.outcome()
		if n := logs.calls.Load(); n != 0 {
			t.Errorf("the store was asked %d times", n)
		}
	})
}

// Whoever follows a program's end finds all that it has written.
func TestAttempt_EndsOnceWhatAProgramHasWrittenIsStored(t *testing.T) {
	do := func(_ context.Context, a task.Attempt) { fmt.Fprintln(a.Output(slog.LevelInfo, true), "line") }
	inBubble(t, do, func(t *testing.T, w *fixture, logs *shut) {
		w.launchLogged("b", task.Policy{})
		synctest.Wait()
		w.wantNothing("before the line is stored")
		close(logs.open)
		synctest.Wait()
		w.outcome()
		if got := kept(t, logs); !slices.Equal(got, []string{"1 info line"}) {
			t.Errorf("the log has %q", got)
		}
	})
}

// An outcome that waits is lost with its node: a program that has succeeded would run again.
func TestAttempt_WaitsASecondAtMostForALogThatIsAway(t *testing.T) {
	do := func(_ context.Context, a task.Attempt) { fmt.Fprintln(a.Output(slog.LevelInfo, true), "line") }
	inBubble(t, do, func(t *testing.T, w *fixture, logs *shut) {
		for i, most := range []time.Duration{time.Second, time.Second, 0, 0} {
			began := time.Now()
			w.launchLogged("b", task.Policy{})
			<-w.inbox.woken
			took := time.Since(began)
			w.outcome()
			if took > most {
				t.Errorf("attempt %d has ended after %s, want %s at most", i+1, took, most)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// What functions log and write never waits, neither at once nor at the end, whatever becomes of the store.
func TestAttempt_OfAFunctionNeverWaitsForItsLog(t *testing.T) {
	do := func(_ context.Context, a task.Attempt) {
		out := a.Output(slog.LevelInfo, false)
		for i := range 5000 {
			a.Log.Info("logged", "i", i)
			fmt.Fprintln(out, strings.Repeat("x", 1000))
		}
	}
	inBubble(t, do, func(t *testing.T, w *fixture, logs *shut) {
		began := time.Now()
		w.launchLogged("b", task.Policy{})
		<-w.inbox.woken
		w.outcome()
		if took := time.Since(began); took > 0 {
			t.Errorf("the attempt took %s", took)
		}
	})
}

func TestOutput_IsClosedAfterTheAttempt(t *testing.T) {
	var used, unused, late io.Writer
	var a task.Attempt
	do := func(_ context.Context, at task.Attempt) {
		a, used, unused = at, at.Output(slog.LevelInfo, false), at.Output(slog.LevelInfo, true)
		fmt.Fprintln(used, "line")
	}
	inBubble(t, do, func(t *testing.T, w *fixture, logs *shut) {
		close(logs.open)
		w.launchLogged("b", task.Policy{})
		synctest.Wait()
		w.outcome()
		late = a.Output(slog.LevelError, false)
		a.Log.Info("late")
		for name, out := range map[string]io.Writer{"used": used, "unused": unused, "late": late} {
			if _, err := fmt.Fprintln(out, "more"); err != io.ErrClosedPipe {
				t.Errorf("%s: %v, want %v", name, err, io.ErrClosedPipe)
			}
		}
	})
}

func TestOutput_OfAnAttemptWithoutALineIsClosedAfterIt(t *testing.T) {
	var a task.Attempt
	do := func(_ context.Context, at task.Attempt) { a = at }
	inBubble(t, do, func(t *testing.T, w *fixture, logs *shut) {
		close(logs.open)
		w.launchLogged("b", task.Policy{})
		synctest.Wait()
		w.outcome()
		a.Log.Info("late")
		if _, err := fmt.Fprintln(a.Output(slog.LevelInfo, false), "late"); err != io.ErrClosedPipe {
			t.Errorf("%v, want %v", err, io.ErrClosedPipe)
		}
	})
}

// A program that has to end must not be held any more: it could not.
func TestOutput_IsHeldUntilTheContextEnds(t *testing.T) {
	do := func(ctx context.Context, a task.Attempt) {
		out := a.Output(slog.LevelInfo, true)
		for i := range 5000 {
			fmt.Fprintln(out, i)
		}
	}
	inBubble(t, do, func(t *testing.T, w *fixture, _ *shut) {
		began := time.Now()
		started := w.launchLogged("b", task.Policy{})
		time.Sleep(time.Second)
		w.wantNothing("while the store takes nothing")
		w.exec.Cancel(0, started, task.ErrCancelled)
		<-w.inbox.woken
		w.outcome()
		if took := time.Since(began); took > 2*time.Second+time.Millisecond {
			t.Errorf("the attempt took %s, want 1 s of work and 1 s for its log at most", took)
		}
	})
}
