package logwriters_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"taskledger/engine/internal/logwriters"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/tasklog"
	"taskledger/tasklog/memlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is the writers of a node, whose store takes nothing while it is shut. It counts lines.
type fixture struct {
	*memlog.Store
	*logwriters.Writers

	mu            sync.Mutex
	open          chan struct{}
	kept, dropped int64
}

func newFixture() *fixture {
	f := &fixture{Store: memlog.New(), open: make(chan struct{})}
	f.Writers = logwriters.New(context.Background(), logwriters.Config{
		To:    f,
		Meter: f,
		Log:   slog.New(slog.DiscardHandler),
	})
	return f
}

// Append implements tasklog.Store.
func (f *fixture) Append(
	ctx context.Context, of tasklog.Attempt, after tasklog.End, b tasklog.Batch,
) (tasklog.End, error) {
	select {
	case <-f.open:
		return f.Store.Append(ctx, of, after, b)
	case <-ctx.Done():
		return tasklog.End{}, ctx.Err()
	}
}

// Count implements meter.Meter.
func (f *fixture) Count(c meter.Counter, behavior string, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case c == meter.LogLinesKept && behavior == "":
		f.kept += n
	case c == meter.LogLinesDropped && behavior == "":
		f.dropped += n
	default:
		panic("another counter")
	}
}

// Observe implements meter.Meter.
func (f *fixture) Observe(meter.Histogram, string, []float64) {}

// Set implements meter.Meter.
func (f *fixture) Set(meter.Gauge, string, float64) {}

func (f *fixture) wantCounted(t *testing.T, when string, kept, dropped int64) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kept != kept || f.dropped != dropped {
		t.Errorf("%s: %d lines kept and %d dropped, want %d and %d", when, f.kept, f.dropped, kept, dropped)
	}
}

// of is the log of the first attempt of a life.
func of(life int) tasklog.Attempt {
	return tasklog.Attempt{Shard: 1, Life: events.RefOf(uint64(life), 1), Number: 1}
}

func (f *fixture) output(life int, held bool) (*logwriters.Log, io.Writer) {
	l := f.Of(of(life))
	return l, l.Output(context.Background(), tasklog.Info, held)
}

func TestWriters_AreBoundedAndALogThatFindsNoRoomHasAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		var all []*logwriters.Log
		for i := range logwriters.MaxWriters {
			l, out := f.output(1+i, false)
			all = append(all, l)
			fmt.Fprintln(out, "line")
		}
		late, out := f.output(10_000, true)
		if n, err := fmt.Fprint(out, "one\ntwo\n"); n != 8 || err != nil {
			t.Errorf("wrote %d bytes, %v, want 8", n, err)
		}
		late.Handle(t.Context(), slog.NewRecord(time.Time{}, slog.LevelInfo, "three\nfour", 0), nil)
		f.wantCounted(t, "at the bound", 0, 4)
		close(f.open)
		for _, l := range all {
			if l.End() != nil {
				t.Error("a function's log is waited for")
			}
		}
		time.Sleep(time.Second)
		f.wantCounted(t, "once all have ended", logwriters.MaxWriters, 4)
		fmt.Fprintln(out, "five")
		<-late.End()
		f.wantCounted(t, "at the end", logwriters.MaxWriters+1, 4)
		page, err := tasklog.ReadTask(t.Context(), f, tasklog.Query{
			Shard:    1,
			Life:     of(10_000).Life,
			Attempts: []tasklog.Begun{{Number: 1}},
		})
		if err != nil || len(page.Lines) != 2 || page.Lines[0].Missing != 4 || page.Lines[1].Text != "five" {
			t.Errorf("the log has %+v, %v; want a gap of 4, and a line", page.Lines, err)
		}
		f.Stop(0)
	})
}

// Nothing goes on after the node, whoever still has an output.
func TestWriters_EndWithTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		log, out := f.output(1, false)
		fmt.Fprintln(out, "line")
		time.Sleep(time.Second) // the store has it, and does not answer
		began := time.Now()
		f.Stop(500 * time.Millisecond)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("stopped after %s, want 500 ms", took)
		}
		fmt.Fprintln(out, "another")
		_, next := f.output(2, true)
		fmt.Fprintln(next, "a third")
		log.End()
		f.wantCounted(t, "at the end", 0, 3)
	})
}

// A function that was left behind ends at any time: nothing begins then, beside the wait for what is under way.
func TestWriters_BeginNothingOnceTheNodeStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		log, out := f.output(1, false)
		fmt.Fprintln(out, "line")
		log.End()
		time.AfterFunc(2*time.Second, func() { close(f.open) })
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			f.Stop(time.Minute)
		}()
		time.Sleep(time.Second)
		late, out := f.output(2, false)
		fmt.Fprint(out, "one\ntwo\n")
		late.End()
		<-stopped
		if first, second := f.gaps(t, 1), f.gaps(t, 2); len(first) != 1 || len(second) > 0 {
			t.Errorf("the logs have %d and %d, want a line and nothing", first, second)
		}
		f.wantCounted(t, "at the end", 1, 2)
	})
}

func TestWriters_StoreWhatIsLeftBeforeTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		for i := range 10 {
			log, out := f.output(1+i, false)
			fmt.Fprintln(out, "line")
			log.End()
		}
		time.AfterFunc(400*time.Millisecond, func() { close(f.open) })
		f.Stop(500 * time.Millisecond)
		f.wantCounted(t, "at the end", 10, 0)
	})
}

// Whoever writes while the store has failed everybody for long is neither held nor waited for. It goes on once the
// store takes something.
func TestLog_HoldsNobodyWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		write := func(life int) (took time.Duration) {
			began := time.Now()
			log, out := f.output(life, true)
			for i := range 2000 {
				fmt.Fprintln(out, i)
			}
			if stored := log.End(); stored != nil {
				<-stored
			}
			return time.Since(began)
		}
		if took := write(1); took < 4*time.Second || took > 11*time.Second {
			t.Errorf("the first one took %s, want 5 s of waiting and 5 s at the end at most", took)
		}
		time.Sleep(time.Second)
		if took := write(2); took > 0 {
			t.Errorf("the next one took %s", took)
		}
		close(f.open)
		time.Sleep(10 * time.Second)
		if took := write(3); took > time.Second {
			t.Errorf("once the store is back it takes %s", took)
		}
		f.Stop(0)
		if got, err := f.Read(t.Context(), of(3), tasklog.Range{}); err != nil || got.Last != 2000 {
			t.Errorf("the last log ends with line %d, %v", got.Last, err)
		}
	})
}

// gaps returns the size of each gap in a log, and 0 for each line.
func (f *fixture) gaps(t *testing.T, life int) (sizes []uint64) {
	t.Helper()
	page, err := tasklog.ReadTask(t.Context(), f, tasklog.Query{
		Shard:    1,
		Life:     of(life).Life,
		Attempts: []tasklog.Begun{{Number: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Lines {
		sizes = append(sizes, l.Missing)
	}
	return sizes
}

// A log whose last lines were lost says so, also when its attempt has ended long ago, and when none of its lines has
// found room.
func TestWriters_MarkTheEndsOfLogsOnceTheStoreIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		var all []*logwriters.Log
		for i := range logwriters.MaxWriters {
			log, out := f.output(1+i, false)
			all = append(all, log)
			fmt.Fprint(out, "one\ntwo\n")
		}
		log, out := f.output(5000, false)
		fmt.Fprint(out, "one\ntwo\nthree\n")
		time.Sleep(time.Second)
		for _, one := range all {
			fmt.Fprintln(one.Output(t.Context(), tasklog.Info, false), "three")
		}
		for _, one := range append(all[1:], log) {
			one.End()
		}
		time.Sleep(time.Minute)
		if got := f.gaps(t, 2); len(got) > 0 {
			t.Errorf("while the store takes nothing: %d", got)
		}
		close(f.open)
		time.Sleep(5 * time.Second)
		for life, want := range map[int][]uint64{2: {0, 0, 1, 0}, 1024: {0, 0, 1, 0}, 5000: {3, 0}} {
			if got := f.gaps(t, life); !slices.Equal(got, want) {
				t.Errorf("log %d has lines and gaps %d, want %d", life, got, want)
			}
		}
		if got, want := f.gaps(t, 1), []uint64{0, 0, 0}; !slices.Equal(got, want) {
			t.Errorf("the log that goes on has %d", got)
		}
		f.wantCounted(t, "at the end", 3, 3*logwriters.MaxWriters)
		f.Stop(time.Second)
	})
}

func TestWriters_TryToMarkTheEndsOfLogsBeforeTheyEnd(t *testing.T) {
	for _, back := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture()
			for i := range 3 {
				log, out := f.output(1+i, false)
				fmt.Fprintln(out, "line")
				log.End()
			}
			time.Sleep(time.Minute)
			if back {
				close(f.open)
			}
			began := time.Now()
			f.Stop(3 * time.Second)
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("stopped after %s", took)
			}
			for i := range 3 {
				if got := f.gaps(t, 1+i); len(got) > 0 != back {
					t.Errorf("the store is back %t, log %d has %d", back, i, got)
				}
			}
		})
	}
}

// Where somebody else writes the log, every line counts as dropped, also those that are written afterwards.
func TestWriters_CountWhatIsDroppedSinceAnotherWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		close(f.open)
		for i, n := range []int{1, 4} {
			log, out := f.output(1, false)
			for range n {
				fmt.Fprintln(out, "line", i)
				time.Sleep(time.Second)
			}
			log.End()
			log.End()
		}
		time.Sleep(time.Minute)
		f.wantCounted(t, "at the end", 1, 4)
		if got := f.gaps(t, 1); !slices.Equal(got, []uint64{0}) {
			t.Errorf("the log has %d", got)
		}
		f.Stop(0)
	})
}

// Functions that write much at once leave the processors to the tasks, and what programs write comes between.
func TestWriters_PaceFunctionsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		close(f.open)
		began := time.Now()
		var all []*logwriters.Log
		for i := range 1000 {
			log, out := f.output(1+i, false)
			all = append(all, log)
			fmt.Fprintln(out, "line")
			log.End()
		}
		log, out := f.output(5000, true)
		fmt.Fprintln(out, "line")
		<-log.End()
		if took := time.Since(began); took > 0 {
			t.Errorf("a program waits for %s", took)
		}
		f.Stop(time.Minute)
		if took := time.Since(began); took < 100*time.Millisecond || took > time.Second {
			t.Errorf("1,000 functions have written after %s", took)
		}
		f.wantCounted(t, "at the end", int64(len(all)+1), 0)
	})
}

// Where far more logs begin than can be stored, half as many are, and all again once it is over.
func TestWriters_StoreHalfAsManyBatchesWhileThereIsACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture()
		close(f.open)
		life := 0
		stored := func(seconds, logs int) (lines int64) {
			f.mu.Lock()
			before := f.kept
			f.mu.Unlock()
			for range 100 * seconds {
				for range logs / 100 {
					life++
					log, out := f.output(life, false)
					fmt.Fprintln(out, "line")
					log.End()
				}
				time.Sleep(10 * time.Millisecond)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.kept - before
		}
		stored(6, 10_000) // until those that wait since before have written
		if n := stored(4, 10_000); n < 4*450 || n > 4*550 {
			t.Errorf("%d lines of 10,000 a second are stored in 4 s, want 500 a second", n)
		}
		stored(4, 500)
		if n := stored(4, 900); n < 4*850 {
			t.Errorf("%d lines of 900 a second are stored in 4 s, want all", n)
		}
		f.Stop(time.Minute)
	})
}
