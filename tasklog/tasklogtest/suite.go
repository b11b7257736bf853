// Package tasklogtest holds an implementation of tasklog.Store to its contract.
package tasklogtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"taskledger/events"
	"taskledger/store"
	"taskledger/tasklog"
)

// timeout bounds a test that waits for what never comes.
const timeout = 60 * time.Second

// Begin is the time of the line before line 1 of Lines.
const Begin events.Millis = 1_700_000_000_000

// Fixture is a store of one test.
type Fixture struct {
	tasklog.Store
	// Empty removes the log of an attempt, as the bounds of the store do, which is then to tell of an empty log
	// that it has nothing from before some time after Begin.
	Empty func(of tasklog.Attempt)
}

// Lines makes a batch of n lines from a number on. Line i was written i ms after Begin, and its text names it.
func Lines(first uint64, n int) tasklog.Batch {
	b := tasklog.Batch{First: first}
	for number := first; number < first+uint64(n); number++ {
		b.Lines = append(b.Lines, tasklog.Line{
			At:    Begin + events.Millis(number),
			Level: tasklog.Level(number % 2),
			Text:  fmt.Sprintf("line %d, «%s»", number, strings.Repeat("x", int(number%7))),
		})
	}
	return b
}

// Run runs the suite, in parallel subtests, each on a store of its own that has no logs.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			test(&world{T: t, Fixture: open(t), ctx: ctx})
		})
	}
}

// world holds the store of one test. Its helpers end the test when the store fails them.
type world struct {
	*testing.T
	Fixture
	ctx context.Context
}

// of is the log of most tests.
var of = named(3, events.RefOf(7, 1), 1)

func named(shard uint16, life events.Ref, number uint32) tasklog.Attempt {
	return tasklog.Attempt{Shard: shard, Life: life, Number: number}
}

func (w *world) append(of tasklog.Attempt, after tasklog.End, b tasklog.Batch) tasklog.End {
	w.Helper()
	end, err := w.Append(w.ctx, of, after, b)
	if err != nil {
		w.Fatal(err)
	}
	if end.Line != b.Last() || end.Place == 0 || end.Place == after.Place {
		w.Fatalf("appended lines %d to %d after %+v: the end is %+v", b.First, b.Last(), after, end)
	}
	return end
}

// fill appends batches of the given numbers of lines, and returns their ends.
func (w *world) fill(of tasklog.Attempt, sizes ...int) (ends []tasklog.End) {
	w.Helper()
	var end tasklog.End
	for _, n := range sizes {
		end = w.append(of, end, Lines(end.Line+1, n))
		ends = append(ends, end)
	}
	return ends
}

func (w *world) read(of tasklog.Attempt, r tasklog.Range) tasklog.Stretch {
	w.Helper()
	s, err := w.Read(w.ctx, of, r)
	if err != nil {
		w.Fatal(err)
	}
	return s
}

// has fails the test unless the stretch of a range is as wanted, apart from Oldest.
func (w *world) has(of tasklog.Attempt, r tasklog.Range, want tasklog.Stretch) {
	w.Helper()
	got := w.read(of, r)
	if got.Before != want.Before || got.Last != want.Last || got.More != want.More {
		w.Errorf("%+v of %+v: before %d, last %d, more %t, want %d, %d, %t",
			r, of, got.Before, got.Last, got.More, want.Before, want.Last, want.More)
	}
	if !slices.EqualFunc(got.Batches, want.Batches, same) {
		w.Errorf("%+v of %+v: batches %v, want %v", r, of, spans(got.Batches), spans(want.Batches))
	}
}

func same(a, b tasklog.Batch) bool { return a.First == b.First && slices.Equal(a.Lines, b.Lines) }

func spans(all []tasklog.Batch) (names []string) {
	for _, b := range all {
		names = append(names, fmt.Sprintf("%d-%d", b.First, b.Last()))
	}
	return names
}

func (w *world) taken(of tasklog.Attempt, after tasklog.End, b tasklog.Batch) {
	w.Helper()
	if end, err := w.Append(w.ctx, of, after, b); !errors.Is(err, tasklog.ErrTaken) {
		w.Errorf("appended lines %d to %d after %+v: %+v, %v", b.First, b.Last(), after, end, err)
	}
}

// lives returns the lives of a shard on all pages.
func (w *world) lives(shard uint16) (all []events.Ref) {
	w.Helper()
	for page := 0; ; {
		lives, next, err := w.Lives(w.ctx, shard, page)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, lives...)
		if page = next; page == 0 {
			slices.Sort(all)
			return slices.Compact(all)
		}
	}
}

var tests = map[string]func(*world){
	"Append/AttemptsHaveLogsOfTheirOwn": func(w *world) {
		all := []tasklog.Attempt{of, named(4, of.Life, 1), named(3, of.Life+1, 1), named(3, of.Life, 2)}
		for i, other := range all {
			w.append(other, tasklog.End{}, Lines(1, i+1))
		}
		w.has(of, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{Lines(1, 1)}, Last: 1})
		w.has(named(3, of.Life, 2), tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{Lines(1, 4)}, Last: 4})
	},
	"Append/KeepsEveryLegalLine": func(w *world) {
		b := tasklog.Batch{First: 1, Lines: []tasklog.Line{
			{},
			{At: Begin, Level: tasklog.Error, Text: strings.Repeat("é", tasklog.MaxLineBytes/2)},
			{At: Begin, Text: "\x00\t\r \u2028 \uFFFD"},
		}}
		w.append(of, tasklog.End{}, b)
		w.has(of, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{b}, Last: 3})
	},
	"Append/OfTheLargestBatchIsTaken": func(w *world) {
		b := Lines(1, tasklog.MaxBatchLines)
		for i := range b.Lines {
			b.Lines[i].Text = strings.Repeat(string(rune('a'+i%26)), tasklog.MaxBatchBytes/tasklog.MaxBatchLines)
		}
		w.append(of, tasklog.End{}, b)
		w.has(of, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{b}, Last: b.Last()})
	},
	"Append/OfABatchAgainCountsOnce": func(w *world) {
		ends := w.fill(of, 2, 3)
		for i, after := range []tasklog.End{ends[0], ends[0]} {
			if again := w.append(of, after, Lines(3, 3)); again != ends[1] {
				w.Errorf("time %d: the end is %+v, first it was %+v", i+2, again, ends[1])
			}
		}
		w.has(of, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{Lines(1, 2), Lines(3, 3)}, Last: 5})
	},
	"Append/OfAnotherWriterIsRefused": func(w *world) {
		ends := w.fill(of, 2, 3)
		w.taken(of, tasklog.End{}, Lines(1, 2))
		w.taken(of, tasklog.End{}, Lines(6, 1))
		w.taken(of, ends[0], Lines(3, 2))
		other := Lines(3, 3)
		other.Lines[1].Text = "other"
		w.taken(of, ends[0], other)
		w.has(of, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{Lines(1, 2), Lines(3, 3)}, Last: 5})
	},
	"Append/OfTwoWritersAtOnceTakesOneEachTime": func(w *world) {
		var end tasklog.End
		for range 20 {
			var wrote [2]tasklog.End
			var writing sync.WaitGroup
			for i := range wrote {
				writing.Go(func() {
					b := Lines(end.Line+1, 1)
					b.Lines[0].Text = fmt.Sprint("writer ", i)
					var err error
					if wrote[i], err = w.Append(w.ctx, of, end, b); err != nil && !errors.Is(err, tasklog.ErrTaken) {
						w.Error(err)
					}
				})
			}
			writing.Wait()
			if (wrote[0] == tasklog.End{}) == (wrote[1] == tasklog.End{}) {
				w.Fatalf("both or none wrote: %+v", wrote)
			}
			end = tasklog.End{Line: end.Line + 1, Place: max(wrote[0].Place, wrote[1].Place)}
		}
		if got := w.read(of, tasklog.Range{}); len(got.Batches) != 20 || got.Last != 20 {
			w.Errorf("%d batches up to line %d, want 20", len(got.Batches), got.Last)
		}
	},
	"Append/LeavesOutTheNumbersThatAreLeftOut": func(w *world) {
		end := w.append(of, tasklog.End{}, Lines(5, 2))
		w.append(of, end, Lines(100, 1))
		w.has(of, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{Lines(5, 2), Lines(100, 1)}, Last: 100})
		rest := tasklog.Stretch{Batches: []tasklog.Batch{Lines(100, 1)}, Before: 6, Last: 100}
		w.has(of, tasklog.Range{From: 7}, rest)
	},
	"Append/OfALogThatWasEmptiedGoesOn": func(w *world) {
		ends := w.fill(of, 2, 3)
		w.Empty(of)
		end := w.append(of, ends[1], Lines(6, 2))
		if again := w.append(of, ends[1], Lines(6, 2)); again != end {
			w.Errorf("the end is %+v, first it was %+v", again, end)
		}
		w.append(of, end, Lines(8, 1))
		w.has(of, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{Lines(6, 2), Lines(8, 1)}, Last: 8})
	},
	"Append/RefusesWhatBreaksARule": func(w *world) {
		long, late, wrong, binary := Lines(1, 1), Lines(1, 2), Lines(1, 1), Lines(1, 1)
		long.Lines[0].Text = strings.Repeat("x", tasklog.MaxLineBytes+1)
		late.Lines[1].At = late.Lines[0].At - 1
		wrong.Lines[0].Level = tasklog.Error + 1
		binary.Lines[0].Text = "\xff"
		large := Lines(1, 5)
		for i := range large.Lines {
			large.Lines[i].Text = strings.Repeat("x", tasklog.MaxLineBytes)
		}
		for want, c := range map[string]struct {
			of    tasklog.Attempt
			after tasklog.End
			b     tasklog.Batch
		}{
			"life":               {tasklog.Attempt{Number: 1}, tasklog.End{}, Lines(1, 1)},
			"attempt":            {tasklog.Attempt{Life: 1}, tasklog.End{}, Lines(1, 1)},
			"lines: 0":           {of, tasklog.End{}, tasklog.Batch{First: 1}},
			"lines: 501":         {of, tasklog.End{}, Lines(1, tasklog.MaxBatchLines+1)},
			"lines: 81920 bytes": {of, tasklog.End{}, large},
			"first: line 0":      {of, tasklog.End{}, Lines(0, 1)},
			"first: line 2":      {of, tasklog.End{Line: 2, Place: 1}, Lines(2, 1)},
			"text: line 1 has":   {of, tasklog.End{}, long},
			"text: line 1 is no": {of, tasklog.End{}, binary},
			"level":              {of, tasklog.End{}, wrong},
			"at: line 2":         {of, tasklog.End{}, late},
		} {
			_, err := w.Append(w.ctx, c.of, c.after, c.b)
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), want) {
				w.Errorf("%s: %v", want, err)
			}
		}
		w.has(of, tasklog.Range{}, tasklog.Stretch{})
	},
	"Read/OfNothingIsEmpty": func(w *world) {
		w.has(of, tasklog.Range{}, tasklog.Stretch{})
		w.append(of, tasklog.End{}, Lines(1, 1))
		w.has(named(3, of.Life, 2), tasklog.Range{}, tasklog.Stretch{})
	},
	"Read/OfALogThatWasEmptiedSaysFromWhenTheStoreHasSomething": func(w *world) {
		w.fill(of, 1)
		w.Empty(of)
		w.has(of, tasklog.Range{}, tasklog.Stretch{})
		if got := w.read(of, tasklog.Range{}); got.Oldest <= Begin {
			w.Errorf("the store has nothing from before %d, want a time after %d", got.Oldest, Begin)
		}
	},
	"Read/ByTimeReturnsTheBatchesWithBothEnds": func(w *world) {
		w.fill(of, 10, 1, 10, 1, 10) // the first lines are 1, 11, 12, 22, 23
		all := []tasklog.Batch{Lines(1, 10), Lines(11, 1), Lines(12, 10), Lines(22, 1), Lines(23, 10)}
		for _, c := range []struct {
			since, until events.Millis // after Begin
			from, to     int           // of the batches
		}{
			{1, 32, 0, 5}, {-5, 0, 0, 0}, {0, 1, 0, 1}, {10, 10, 0, 1}, {10, 11, 0, 2}, {11, 11, 1, 2}, {15, 16, 2, 3},
			{21, 22, 2, 4}, {22, 22, 3, 4}, {32, 99, 4, 5}, {33, 99, 5, 5}, {20, 10, 0, 0},
		} {
			want := tasklog.Stretch{Batches: all[c.from:c.to], Last: 32}
			if c.from > 0 {
				want.Before = all[c.from-1].Last()
			}
			r := tasklog.Range{Since: Begin + c.since, Until: Begin + c.until}
			if len(want.Batches) == 0 {
				if got := w.read(of, r); len(got.Batches) > 0 || got.More || got.Last != 32 {
					w.Errorf("%+v: batches %v, more %t, last %d", r, spans(got.Batches), got.More, got.Last)
				}
				continue
			}
			w.has(of, r, want)
		}
		w.has(of, tasklog.Range{Since: Begin + 22}, tasklog.Stretch{Batches: all[3:], Before: 21, Last: 32})
	},
	"Read/ByTimeReturnsEveryBatchOfAMillisecond": func(w *world) {
		var all []tasklog.Batch
		var end tasklog.End
		for i := range uint64(4) {
			b := tasklog.Batch{First: i + 1, Lines: []tasklog.Line{{At: Begin, Text: fmt.Sprint(i)}}}
			end = w.append(of, end, b)
			all = append(all, b)
		}
		w.has(of, tasklog.Range{Since: Begin, Until: Begin}, tasklog.Stretch{Batches: all, Last: 4})
	},
	"Read/FromALineReturnsTheBatchThatHoldsIt": func(w *world) {
		w.fill(of, 3, 3, 3)
		for from, before := range map[uint64]uint64{0: 0, 1: 0, 3: 0, 4: 3, 6: 3, 7: 6, 9: 6} {
			var want []tasklog.Batch
			for first := before + 1; first < 9; first += 3 {
				want = append(want, Lines(first, 3))
			}
			w.has(of, tasklog.Range{From: from}, tasklog.Stretch{Batches: want, Before: before, Last: 9})
		}
		if got := w.read(of, tasklog.Range{From: 10}); len(got.Batches) > 0 || got.Last != 9 || got.More {
			w.Errorf("from behind the end: %+v", got)
		}
		rest := tasklog.Stretch{Batches: []tasklog.Batch{Lines(7, 3)}, Before: 6, Last: 9}
		w.has(of, tasklog.Range{From: 2, Since: Begin + 7}, rest)
		w.has(of, tasklog.Range{From: 8, Since: Begin + 2}, rest)
	},
	"Read/IsBoundedAndGoesOn": func(w *world) {
		w.fill(of, 5, 5, 5, 5, 5)
		var got []tasklog.Batch
		r := tasklog.Range{Bytes: Lines(1, 5).Bytes() + 1}
		for more, before := true, uint64(0); more; r.From = before + 1 {
			s := w.read(of, r)
			if len(s.Batches) == 0 || len(s.Batches) > 2 || s.Before != before || s.Last != 25 {
				w.Fatalf("from %d: %v, before %d, want %d", r.From, spans(s.Batches), s.Before, before)
			}
			got, more, before = append(got, s.Batches...), s.More, s.Batches[len(s.Batches)-1].Last()
		}
		if len(got) != 5 {
			w.Errorf("read %v", spans(got))
		}
		one := tasklog.Stretch{Batches: []tasklog.Batch{Lines(1, 5)}, Last: 25}
		w.has(of, tasklog.Range{Until: Begin + 5, Bytes: 1}, one)
	},
	"Read/OfSmallBatchesIsBoundedAndGoesOn": func(w *world) {
		const batches = tasklog.MaxStretchBatches + 20
		w.fill(of, slices.Repeat([]int{1}, batches)...)
		next := uint64(1)
		for _, n := range []int{tasklog.MaxStretchBatches, 20} {
			s := w.read(of, tasklog.Range{From: next})
			if len(s.Batches) != n || s.Batches[0].First != next || s.More != (n == tasklog.MaxStretchBatches) {
				w.Fatalf("from %d: %v, more %t; want %d", next, spans(s.Batches), s.More, n)
			}
			next += uint64(n)
		}
	},
	"Trim/RemovesBatchesUpToAnEnd": func(w *world) {
		ends := w.fill(of, 2, 2, 2)
		for range 2 {
			if err := w.Trim(w.ctx, of, ends[1]); err != nil {
				w.Fatal(err)
			}
			w.has(of, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{Lines(5, 2)}, Last: 6})
		}
		w.append(of, ends[2], Lines(7, 1))
	},
	"Trim/UpToWholeLeavesNothingOfTheAttempt": func(w *world) {
		second := named(3, of.Life, 2)
		w.fill(of, 2, 2)
		w.fill(second, 1)
		if err := w.Trim(w.ctx, of, tasklog.Whole); err != nil {
			w.Fatal(err)
		}
		w.has(of, tasklog.Range{}, tasklog.Stretch{})
		w.has(second, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{Lines(1, 1)}, Last: 1})
	},
	"Trim/OfNothingIsNoError": func(w *world) {
		if err := w.Trim(w.ctx, of, tasklog.Whole); err != nil {
			w.Error(err)
		}
	},
	"Forget/RemovesAllAttemptsOfALife": func(w *world) {
		others := []tasklog.Attempt{named(4, of.Life, 1), named(3, of.Life+1, 1), named(3, of.Life*10, 1)}
		for _, other := range append(others, of, named(3, of.Life, 12)) {
			w.fill(other, 1, 1)
		}
		for range 2 {
			if err := w.Forget(w.ctx, of.Shard, of.Life, 0); err != nil {
				w.Fatal(err)
			}
			w.has(of, tasklog.Range{}, tasklog.Stretch{})
		}
		w.has(named(3, of.Life, 12), tasklog.Range{}, tasklog.Stretch{})
		for _, other := range others {
			w.has(other, tasklog.Range{}, tasklog.Stretch{Batches: []tasklog.Batch{Lines(1, 1), Lines(2, 1)}, Last: 2})
		}
	},
	"Forget/BeforeAnAttemptRemovesThoseBelow": func(w *world) {
		for _, number := range []uint32{2, 9, 10, 11, 100} {
			w.fill(named(3, of.Life, number), 1, 1)
		}
		w.fill(named(3, of.Life+1, 2), 1)
		if err := w.Forget(w.ctx, of.Shard, of.Life, 11); err != nil {
			w.Fatal(err)
		}
		for number, last := range map[uint32]uint64{2: 0, 9: 0, 10: 0, 11: 2, 100: 2} {
			if got := w.read(named(3, of.Life, number), tasklog.Range{}).Last; got != last {
				w.Errorf("attempt %d ends with line %d, want %d", number, got, last)
			}
		}
		if w.read(named(3, of.Life+1, 2), tasklog.Range{}).Last != 1 {
			w.Error("the log of another life is gone")
		}
	},
	"Forget/OfEveryLifeRemovesAllLogsOfTheShard": func(w *world) {
		for _, one := range []tasklog.Attempt{of, named(3, 1<<63, 2), named(33, of.Life, 1)} {
			w.fill(one, 1)
		}
		if err := w.Forget(w.ctx, 3, tasklog.EveryLife, 2); err != nil {
			w.Fatal(err)
		}
		if left, others := w.lives(3), w.lives(33); len(left) > 0 || len(others) != 1 {
			w.Errorf("lives %v are left, and %v of another shard", left, others)
		}
	},
	"Forget/OfNothingIsNoError": func(w *world) {
		if err := errors.Join(w.Forget(w.ctx, 1, 1, 0), w.Forget(w.ctx, 1, 1, 5)); err != nil {
			w.Error(err)
		}
	},
	"Lives/AreThoseOfTheShardThatHaveALog": func(w *world) {
		if all := w.lives(3); len(all) > 0 {
			w.Errorf("lives %v of a shard without logs", all)
		}
		all := []tasklog.Attempt{named(3, 9, 1), named(3, 9, 2), named(3, 10, 1), named(3, 1<<63, 1), named(30, 5, 1)}
		for _, a := range all {
			w.fill(a, 1, 1)
		}
		if all := w.lives(3); !slices.Equal(all, []events.Ref{9, 10, 1 << 63}) {
			w.Errorf("lives %v", all)
		}
		if err := w.Forget(w.ctx, 3, 9, 0); err != nil {
			w.Fatal(err)
		}
		if all := w.lives(3); !slices.Equal(all, []events.Ref{10, 1 << 63}) {
			w.Errorf("lives %v without the one that was forgotten", all)
		}
	},
}
