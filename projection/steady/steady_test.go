package steady_test

import (
	"testing"

	"pgregory.net/rapid"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection/steady"
)

const (
	start  events.Millis = 1_700_000_000_000
	minute events.Millis = 60_000
	hour                 = 60 * minute
)

func TestSince_CountsAMinuteOfAJumpAndAllOfWhatIsShorter(t *testing.T) {
	var c steady.Clock
	c.Tick(start)
	c.Tick(start + 5000)
	if got := c.Since(start, start+5000+minute); got != 5000+minute {
		t.Errorf("without a jump: %d ms", got)
	}
	for _, jump := range []events.Millis{minute + 1, hour, 26 * hour} {
		if got := c.Since(start, start+5000+jump); got != 5000+minute {
			t.Errorf("a jump of %d ms to the next entry counts %d ms", jump, got-5000)
		}
	}
	c.Tick(start + 5000 + hour)
	if got := c.Since(start, start+5000+hour+7); got != 5000+minute+7 {
		t.Errorf("after a jump: %d ms", got)
	}
	if got := c.Since(start+5000+hour, start+5000+hour+7); got != 7 {
		t.Errorf("from the entry after the jump on: %d ms", got)
	}
}

func TestSince_OfNoClockIsAllTheTime(t *testing.T) {
	var c *steady.Clock
	if got := c.Since(start, start+26*hour); got != 26*hour {
		t.Errorf("%d ms", got)
	}
}

// The model adds up what counts of each gap.
func TestClock_AgreesWithASumOfGapsAlsoOnceItIsRestored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c steady.Clock
		type entry struct{ at, counted events.Millis }
		all := []entry{{start, 0}}
		c.Tick(start)
		for range rapid.IntRange(1, 150).Draw(t, "entries") {
			gap := events.Millis(rapid.OneOf(rapid.Int64Range(0, 10_000), rapid.Int64Range(0, int64(30*hour))).Draw(t, "gap"))
			last := all[len(all)-1]
			next := entry{last.at + gap, last.counted + min(gap, steady.MaxGap)}
			for _, e := range all {
				want, got := next.counted-e.counted, c.Since(e.at, next.at)
				if e.at == last.at && e.at != next.at {
					want = min(gap, steady.MaxGap) // of several entries at once the last one counts
				}
				if got != want && (want <= steady.Longest || got <= steady.Longest) {
					t.Fatalf("since %d until the next entry at %d: %d ms, want %d", e.at, next.at, got, want)
				}
			}
			c.Tick(next.at)
			all = append(all, next)
		}
		now := all[len(all)-1]
		var again steady.Clock
		rows, write := c.List()
		for i := range rows {
			var w wire.Writer
			write(i, &w)
			r := wire.NewReader(w.B)
			if again.Read(r); r.Close() != nil {
				t.Fatal(r.Err())
			}
		}
		if !again.Restored(now.at) {
			t.Fatal("refused")
		}
		for _, e := range all {
			if got, want := again.Since(e.at, now.at+hour), c.Since(e.at, now.at+hour); got != want {
				t.Fatalf("restored, since %d: %d ms, want %d", e.at, got, want)
			}
		}
	})
}

func TestRead_RefusesWhatNoClockHas(t *testing.T) {
	row := func(at, cut events.Millis) *wire.Reader {
		var w wire.Writer
		w.Array(2)
		w.Int(int64(at))
		w.Int(int64(cut))
		return wire.NewReader(w.B)
	}
	refused := func(c *steady.Clock, name string, r *wire.Reader) {
		if c.Read(r); r.Err() == nil {
			t.Errorf("%s is read", name)
		}
	}
	refused(new(steady.Clock), "no gap", row(start, 0))
	refused(new(steady.Clock), "a gap below 0", row(start, -1))
	refused(new(steady.Clock), "a gap of no time", row(0, 1))
	refused(new(steady.Clock), "a gap as long as all time", row(10, 10))
	var first steady.Clock
	if first.Read(row(start+2*hour, hour)); first.Restored(start+2*hour-1) || !first.Restored(start+2*hour) {
		t.Error("a gap after the last entry is taken, or one before it is not")
	}
	refused(&first, "a gap before the one so far", row(start+hour, 1))
	refused(&first, "a gap from within the one so far on", row(start+3*hour, hour+1))
	r := row(start+3*hour, hour)
	if first.Read(r); r.Err() != nil {
		t.Errorf("the next gap: %v", r.Err())
	}
	var c steady.Clock
	for i := range steady.Longest/steady.MaxGap + 2 {
		r := row(start+2*(i+1)*hour, hour)
		if c.Read(r); (r.Err() == nil) != (i < steady.Longest/steady.MaxGap+1) {
			t.Fatalf("row %d: %v", i, r.Err())
		}
	}
}
