package tasklog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"taskledger/store"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
)

func TestWriter_OfNoAttemptIsRefused(t *testing.T) {
	for want, of := range map[string]tasklog.Attempt{"life": {Number: 1}, "attempt": {Life: 1}} {
		_, err := tasklog.NewWriter(newUnsteady(0), of)
		if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestWriter_SendsABatchWhenItIsFullOrAfter200Milliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		w := startWriter(t, s, of)
		out := w.Output(tasklog.Info, true)
		sent := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := len(s.calls()); got != want {
				t.Errorf("%d batches were sent, want %d", got, want)
			}
		}
		fmt.Fprintln(out, "first")
		time.Sleep(100 * time.Millisecond)
		fmt.Fprintln(out, "second")
		time.Sleep(99 * time.Millisecond)
		sent(0)
		time.Sleep(time.Millisecond)
		sent(1)
		for range 4 {
			fmt.Fprintln(out, strings.Repeat("x", tasklog.MaxLineBytes))
		}
		sent(2)
		for range tasklog.MaxBatchLines {
			fmt.Fprintln(out)
		}
		sent(3)
		if _, err := w.close(); err != nil {
			t.Error(err)
		}
		sent(3)
	})
}

// A program that writes faster than batches are acknowledged is held, and nothing of it is lost.
func TestWriter_KeepsAllThatAProgramWritesWhileTheStoreAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(time.Second)
		w := startWriter(t, s, of)
		out := w.Output(tasklog.Info, true)
		var want []string
		for i := range 20_000 {
			want = append(want, fmt.Sprint("line ", i))
			fmt.Fprintln(out, want[i])
		}
		fmt.Fprint(out, "no end")
		if _, err := w.close(); err != nil {
			t.Error(err)
		}
		if got := texts(t, s); !slices.Equal(got, append(want, "no end")) || w.Dropped() > 0 {
			t.Errorf("%d lines and gaps, %d dropped, want %d lines", len(got), w.Dropped(), len(want)+1)
		}
	})
}

func TestWriter_HoldsAProgramUntilTheStoreCountsAsAwayAndKeepsTheNewestLines(t *testing.T) {
	for _, how := range []fate{away, hanging} {
		synctest.Test(t, func(t *testing.T) {
			s := newUnsteady(0)
			s.become(how)
			w := startWriter(t, s, of)
			out := w.Output(tasklog.Info, true)
			began := time.Now()
			for i := range 5000 {
				fmt.Fprintln(out, i)
			}
			if held := time.Since(began); held > 5*time.Second+time.Millisecond || held < 4*time.Second {
				t.Errorf("held for %s, want 5 s", held)
			}
			s.become(fine)
			time.Sleep(3 * time.Second) // a call that hangs ends, and is made again
			if _, err := w.close(); err != nil {
				t.Error(err)
			}
			got := texts(t, s)
			if len(got) != 1501 || got[0] != "0" || got[500] != "gap of 3500" || got[1500] != "4999" {
				t.Errorf("%d lines and gaps, want the batch under way, a gap of 3500, the newest 1000", len(got))
			}
			if w.Dropped() != 3500 {
				t.Errorf("%d lines dropped", w.Dropped())
			}
		})
	}
}

func TestWriter_NeverHoldsAFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		s.become(hanging)
		w := startWriter(t, s, of)
		log, out := slog.New(w.Handler()), w.Output(tasklog.Info, false)
		began := time.Now()
		for i := range 5000 {
			log.Info("logged", "i", i)
			fmt.Fprintln(out, strings.Repeat("x", 1000))
		}
		if held := time.Since(began); held > 0 {
			t.Errorf("held for %s", held)
		}
		s.become(fine)
		if _, err := w.close(); err != nil {
			t.Error(err)
		}
		lines, err := readAll(s, tasklog.Query{})
		if err != nil {
			t.Fatal(err)
		}
		checkCoverage(t, lines, 10_000)
	})
}

// checkCoverage fails the test unless each number up to n is that of a line, or in a gap, once.
func checkCoverage(t *testing.T, lines []tasklog.TaskLine, n uint64) {
	t.Helper()
	next := uint64(1)
	for _, l := range lines {
		first := l.Number
		if l.Missing > 0 {
			first = l.Number - l.Missing + 1
		}
		if first != next {
			t.Fatalf("line %d where %d is due", first, next)
		}
		next = l.Number + 1
	}
	if next != n+1 {
		t.Errorf("the log ends with line %d, want %d", next-1, n)
	}
}

func TestWriter_TrimsTheOldestLinesOfALargeLog(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		lines int
	}{
		"many lines": {"x", tasklog.MaxLines*2 + 1},
		"much text":  {strings.Repeat("x", tasklog.MaxLineBytes), 2*tasklog.MaxBytes/tasklog.MaxLineBytes + 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newUnsteady(time.Millisecond)
				w := startWriter(t, s, of)
				out := w.Output(tasklog.Info, true)
				for range c.lines {
					fmt.Fprintln(out, c.text)
				}
				if _, err := w.close(); err != nil {
					t.Error(err)
				}
				lines, err := readAll(s, tasklog.Query{})
				if err != nil {
					t.Fatal(err)
				}
				checkCoverage(t, lines, uint64(c.lines))
				kept, bytes := len(lines)-1, (len(lines)-1)*len(c.text)
				if lines[0].Missing == 0 || kept > tasklog.MaxLines || bytes > tasklog.MaxBytes {
					t.Errorf("%d lines of %d bytes are kept", kept, bytes)
				}
				if kept < tasklog.MaxLines*9/10 && bytes < tasklog.MaxBytes*9/10 {
					t.Errorf("only %d lines of %d bytes are kept", kept, bytes)
				}
				if n := len(s.trims); n > 20 {
					t.Errorf("trimmed %d times", n)
				}
			})
		})
	}
}

// A store that has lost all that it had counts its places anew, and what was written since is not taken for what was
// there before.
func TestWriter_TrimsNothingOfAStoreThatBeganAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const before, since = tasklog.MaxLines / 2, tasklog.MaxLines * 9 / 10
		s := newUnsteady(time.Millisecond)
		w := startWriter(t, s, of)
		out := w.Output(tasklog.Info, true)
		for range before {
			fmt.Fprintln(out, "x")
		}
		time.Sleep(time.Second) // of the bubble: all is stored
		synctest.Wait()
		s.Store = memlog.New()
		for range since {
			fmt.Fprintln(out, "x")
		}
		if _, err := w.close(); err != nil {
			t.Error(err)
		}
		lines, err := readAll(s, tasklog.Query{})
		if err != nil {
			t.Fatal(err)
		}
		checkCoverage(t, lines, before+since)
		if n := len(lines) - 1; n != since || lines[0].Missing != before {
			t.Errorf("%d lines are kept behind a gap of %d, want %d and %d", n, lines[0].Missing, since, before)
		}
	})
}

// Attempts between may have written nothing.
func TestWriter_LeavesTheLogsOfTheNewestTenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		for _, number := range []uint32{1, 2, 8, 9, 18} {
			a := of
			a.Number = number
			w := startWriter(t, s, a)
			fmt.Fprintln(w.Output(tasklog.Info, true), strings.Repeat("text\n", 2000))
			if _, err := w.close(); err != nil {
				t.Error(err)
			}
		}
		for number, has := range map[uint32]bool{1: false, 2: false, 8: false, 9: true, 18: true} {
			a := of
			a.Number = number
			if got, err := s.Read(t.Context(), a, tasklog.Range{}); err != nil || (got.Last > 0) != has {
				t.Errorf("attempt %d has %d lines, %v", number, got.Last, err)
			}
		}
		if s.forgets != 1 {
			t.Errorf("the store was asked %d times, want once by the last attempt", s.forgets)
		}
	})
}

func TestWriter_AsksNothingForAnAttemptThatWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		late := of
		late.Number = 11
		w := startWriter(t, s, late)
		w.Output(tasklog.Info, true)
		w.Handler()
		time.Sleep(time.Hour)
		if took, err := w.close(); took > 0 || err != nil {
			t.Errorf("closed after %s with %v", took, err)
		}
		if len(s.calls()) > 0 || s.forgets > 0 {
			t.Errorf("%d batches, %d removals", len(s.calls()), s.forgets)
		}
	})
}

func TestWriter_EndsWhereAnotherOneWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		first, second := startWriter(t, s, of), startWriter(t, s, of)
		fmt.Fprintln(first.Output(tasklog.Info, true), "first")
		time.Sleep(time.Second)
		out := second.Output(tasklog.Info, true)
		fmt.Fprintln(out, "second")
		if err := <-second.ended; !errors.Is(err, tasklog.ErrTaken) {
			t.Errorf("ended with %v", err)
		}
		began := time.Now()
		for range 5000 {
			if _, err := fmt.Fprintln(out, "more"); err != nil {
				t.Fatal(err)
			}
		}
		if held := time.Since(began); held > 0 || second.Dropped() != 5001 {
			t.Errorf("held for %s, %d lines dropped", held, second.Dropped())
		}
		second.Close()
		if _, err := first.close(); err != nil {
			t.Error(err)
		}
		if got := texts(t, s); !slices.Equal(got, []string{"first"}) {
			t.Errorf("the log has %q", got)
		}
	})
}

func TestWriter_DropsABatchThatTheStoreRefusesAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		s.become(refusing)
		w := startWriter(t, s, of)
		out := w.Output(tasklog.Info, true)
		fmt.Fprintln(out, "refused")
		time.Sleep(time.Second)
		s.become(fine)
		fmt.Fprintln(out, "taken")
		if _, err := w.close(); !errors.Is(err, store.ErrRefused) {
			t.Errorf("closed with %v", err)
		}
		if got := texts(t, s); !slices.Equal(got, []string{"gap of 1", "taken"}) || w.Dropped() != 1 {
			t.Errorf("the log has %q, %d dropped", got, w.Dropped())
		}
	})
}

// What is missing at the end of a log shows to whoever reads it, like any other gap.
func TestWriter_MarksTheEndThatTheStoreRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		w := startWriter(t, s, of)
		out := w.Output(tasklog.Info, true)
		fmt.Fprintln(out, "taken")
		time.Sleep(time.Second)
		s.become(refusing)
		fmt.Fprint(out, "refused\nand\nmore")
		time.Sleep(500 * time.Millisecond)
		s.become(fine)
		if _, err := w.close(); !errors.Is(err, store.ErrRefused) || w.Untold() {
			t.Errorf("closed with %v, untold %t", err, w.Untold())
		}
		if got := texts(t, s); !slices.Equal(got, []string{"taken", "gap of 2", "more"}) {
			t.Errorf("the log has %q", got)
		}
		s = newUnsteady(0)
		s.become(refusing)
		w = startWriter(t, s, of)
		fmt.Fprint(w.Output(tasklog.Info, true), "one\ntwo\n")
		time.Sleep(500 * time.Millisecond)
		s.become(fine)
		if _, err := w.close(); !errors.Is(err, store.ErrRefused) || w.Untold() || w.Dropped() != 2 {
			t.Errorf("closed with %v, untold %t, dropped %d", err, w.Untold(), w.Dropped())
		}
		if got := texts(t, s); len(got) != 2 || got[0] != "gap of 2" || !strings.HasPrefix(got[1], "the log ends here") {
			t.Errorf("the log has %q", got)
		}
	})
}

func TestWriter_MarksTheEndOnceTheStoreIsBack(t *testing.T) {
	for _, how := range []fate{away, hanging, unheard} {
		synctest.Test(t, func(t *testing.T) {
			s := newUnsteady(0)
			w := startWriter(t, s, of)
			out := w.Output(tasklog.Error, false)
			fmt.Fprintln(out, "first")
			time.Sleep(time.Second)
			s.become(how)
			fmt.Fprint(out, "one\ntwo\n")
			time.Sleep(time.Second)
			s.become(away)
			fmt.Fprint(out, "three")
			if _, err := w.close(); err == nil || !w.Untold() {
				t.Errorf("closed with %v, untold %t", err, w.Untold())
			}
			if err := w.Mark(t.Context()); err == nil {
				t.Error("the end is marked while the store is away")
			}
			s.become(fine)
			for range 2 {
				if err := w.Mark(t.Context()); err != nil || w.Untold() {
					t.Errorf("%v, untold %t", err, w.Untold())
				}
			}
			got := texts(t, s)
			// The batch under way is sent again as it is: it may be there.
			want := []string{"first", "one", "two", "gap of 1", "the log ends here"}
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("the log has %q, want %q", got, want)
			}
			if w.Dropped() != 3 {
				t.Errorf("%d lines dropped, want 3 when Run ended", w.Dropped())
			}
		})
	}
}

func TestWriter_MarksLinesThatWereDroppedBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		w, err := tasklog.NewWriter(s, of)
		if err != nil {
			t.Fatal(err)
		}
		if w.Untold() {
			t.Error("of nothing something is missing")
		}
		w.Skip(3)
		if !w.Untold() {
			t.Error("it is told before it is stored")
		}
		if err := w.Mark(t.Context()); err != nil {
			t.Error(err)
		}
		if got := texts(t, s); len(got) != 2 || got[0] != "gap of 3" {
			t.Errorf("the log has %q", got)
		}
	})
}

func TestWriter_EndsWithinSecondsOfItsCloseWithoutAStore(t *testing.T) {
	for _, how := range []fate{away, hanging} {
		for after, within := range map[time.Duration]time.Duration{0: 5 * time.Second, time.Minute: time.Second} {
			synctest.Test(t, func(t *testing.T) {
				s := newUnsteady(0)
				s.become(how)
				w := startWriter(t, s, of)
				out := w.Output(tasklog.Info, true)
				fmt.Fprint(out, "one\ntwo")
				time.Sleep(after)
				took, err := w.close()
				if took > within || took < within-time.Second {
					t.Errorf("closed %s after its first line: ended after %s, want %s", after, took, within)
				}
				if err == nil || !strings.Contains(err.Error(), "2 lines are left") {
					t.Errorf("ended with %v", err)
				}
				if _, err := fmt.Fprintln(out, "three"); !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("written after the end: %v", err)
				}
			})
		}
	}
}

func TestWriter_EndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := tasklog.NewWriter(newUnsteady(0), of)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		fmt.Fprintln(w.Output(tasklog.Info, true), "text")
		if err := w.Run(ctx); err == nil || !strings.Contains(err.Error(), "1 lines are left") {
			t.Errorf("ended with %v", err)
		}
		w.Close()
	})
}

func TestWriter_ClosedBeforeItRunsStoresAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		w, err := tasklog.NewWriter(s, of)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w.Output(tasklog.Info, false), "text")
		w.Close()
		w.Close()
		began := time.Now()
		if err := w.Run(t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("ended after %s with %v", time.Since(began), err)
		}
		if got := texts(t, s); !slices.Equal(got, []string{"text"}) {
			t.Errorf("the log has %q", got)
		}
	})
}

func TestWriter_TellsOfLinesThatWereDroppedBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		w := startWriter(t, s, of)
		w.Skip(7)
		fmt.Fprintln(w.Output(tasklog.Info, false), "first that is kept")
		if _, err := w.close(); err != nil {
			t.Error(err)
		}
		if got := texts(t, s); !slices.Equal(got, []string{"gap of 7", "first that is kept"}) || w.Dropped() != 7 {
			t.Errorf("the log has %q, %d lines dropped", got, w.Dropped())
		}
	})
}

func TestWriter_HoldsNobodyWhoHasToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(0)
		s.become(hanging)
		w := startWriter(t, s, of)
		out := w.Output(tasklog.Info, true)
		time.AfterFunc(time.Second, w.HoldNobody)
		began := time.Now()
		for i := range 5000 {
			fmt.Fprintln(out, i)
		}
		if held := time.Since(began); held != time.Second {
			t.Errorf("held for %s, want 1 s", held)
		}
		w.Close()
		<-w.ended
	})
}

func TestWriter_HoldsNobodyWhileTheStoreIsSupposedToBeAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newUnsteady(time.Millisecond)
		s.become(away)
		w := startWriter(t, s, of)
		w.SupposeAway()
		out := w.Output(tasklog.Info, true)
		write := func() (took time.Duration) {
			began := time.Now()
			for i := range 5000 {
				fmt.Fprintln(out, i)
			}
			return time.Since(began)
		}
		if held := write(); held > 0 {
			t.Errorf("held for %s", held)
		}
		s.become(fine)
		time.Sleep(time.Second)
		dropped := w.Dropped()
		if held := write(); held == 0 || w.Dropped() > dropped {
			t.Errorf("once the store is back held for %s, %d lines dropped", held, w.Dropped()-dropped)
		}
		if _, err := w.close(); err != nil {
			t.Error(err)
		}
	})
}
