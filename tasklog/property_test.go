package tasklog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/tasklog"
)

// step is something that happens to a log.
type step struct {
	kind string
	n    int
	wait time.Duration
	fate fate
}

func drawSteps(t *rapid.T) (all []step) {
	kinds := []string{"write", "write", "burst", "wait", "fate", "empty", "read"}
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		all = append(all, step{
			kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
			n:    rapid.IntRange(1, 1200).Draw(t, "n"),
			wait: time.Duration(rapid.IntRange(0, 8000).Draw(t, "wait")) * time.Millisecond,
			fate: rapid.SampledFrom([]fate{fine, fine, away, unheard, hanging}).Draw(t, "fate"),
		})
	}
	return all
}

// follower reads a log as it grows, and holds what it is told to what was written.
type follower struct {
	store   *unsteady
	query   tasklog.Query
	written uint64 // lines
	next    uint64 // number of the line that is due
	gaps    int
	told    bool // that lines may be missing, and no line since
}

// text returns the text of a line.
func text(number uint64, size int) string {
	return fmt.Sprintf("line %d %s", number, strings.Repeat("x", size))
}

// read reads up to the end of the log.
func (f *follower) read() error {
	for {
		p, err := tasklog.ReadTask(context.Background(), f.store, f.query)
		if err != nil {
			return err
		}
		for _, l := range p.Lines {
			if err := f.take(l); err != nil {
				return err
			}
		}
		f.query.After = p.Next
		if !p.More {
			return nil
		}
	}
}

func (f *follower) take(l tasklog.TaskLine) error {
	if l.Missing > 0 {
		f.gaps++
	}
	switch {
	case l.Number == 0 && f.told:
		return errors.New("it is told twice that lines may be missing")
	case l.Number == 0: // it is not known which lines are missing
		f.told = true
		return nil
	case l.Missing > 0 && (l.Number-l.Missing+1 != f.next || l.Level != tasklog.Error):
		return fmt.Errorf("gap of %d up to line %d where %d is due", l.Missing, l.Number, f.next)
	case l.Missing == 0 && l.Number != f.next:
		return fmt.Errorf("line %d where %d is due", l.Number, f.next)
	case l.Missing == 0 && !strings.HasPrefix(l.Text, text(l.Number, 0)):
		return fmt.Errorf("line %d reads %.30q", l.Number, l.Text)
	}
	f.next, f.told = l.Number+1, false
	return nil
}

// play lets the steps happen, and then the store answer.
func play(t *testing.T, steps []step, held bool, limit int) error {
	s := newUnsteady(5 * time.Millisecond)
	w := startWriter(t, s, of)
	out := w.Output(tasklog.Info, held)
	began := events.MillisOf(time.Now())
	f := &follower{store: s, next: 1, query: tasklog.Query{
		Shard:    of.Shard,
		Life:     of.Life,
		Attempts: []tasklog.Begun{{Number: of.Number, At: began}},
		Limit:    limit,
	}}
	write := func(size int) {
		f.written++
		fmt.Fprintln(out, text(f.written, size))
	}
	faults := !held
	for _, step := range steps {
		var err error
		switch step.kind {
		case "write":
			write(step.n * 10)
		case "burst":
			for range step.n {
				write(step.n % 100)
			}
		case "wait":
			time.Sleep(step.wait)
		case "fate":
			s.become(step.fate)
			faults = faults || step.fate != fine
		case "empty":
			s.Empty(of, events.MillisOf(time.Now()))
			faults = true
		case "read":
			err = f.read()
		}
		if err != nil {
			return err
		}
	}
	s.become(fine)
	time.Sleep(3 * time.Second) // a call that hangs ends, and is made again
	write(0)
	if _, err := w.close(); err != nil {
		return err
	}
	if err := f.read(); err != nil {
		return err
	}
	if f.next != f.written+1 {
		return fmt.Errorf("told up to line %d of %d", f.next-1, f.written)
	}
	if !faults && (f.gaps > 0 || w.Dropped() > 0) {
		return fmt.Errorf("%d gaps, %d lines dropped, and no fault", f.gaps, w.Dropped())
	}
	return nil
}

// A store may lose batches and acknowledgements, be silent, and empty logs: whoever follows a log is told of every
// line once, by itself or in a gap, and of each without a gap where nothing of that happened to a program.
func TestLog_TellsEveryLineOnceOrInAGap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		steps := drawSteps(r)
		held, limit := rapid.Bool().Draw(r, "held"), rapid.IntRange(0, 50).Draw(r, "limit")
		err := errors.New("the test ended early")
		synctest.Test(t, func(t *testing.T) { err = play(t, steps, held, limit) })
		if err != nil {
			r.Fatal(err)
		}
	})
}
