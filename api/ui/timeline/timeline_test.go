package timeline_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"taskledger/api/ui/timeline"
)

var began = time.Date(2026, 11, 29, 9, 0, 0, 0, time.UTC)

func at(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }

// told writes a drawing in words, a lane a line.
func told(d timeline.Drawing) string {
	var b strings.Builder
	for _, l := range d.Lanes {
		fmt.Fprintf(&b, "%s:", l.Name)
		for _, bar := range l.Bars {
			open := ""
			if bar.Open {
				open = "+"
			}
			fmt.Fprintf(&b, " [%s %.0f-%.0f%s]", bar.Phase, bar.X, bar.X+bar.Width, open)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestDraw_HasALaneForEachNodeAndWaitsAsPhases(t *testing.T) {
	moves := []timeline.Move{
		{At: at(0), Kind: "Created"},
		{At: at(10), Kind: "Started", Node: "a", Attempt: 1},
		{At: at(20), Kind: "Progressed", Node: "a"},
		{At: at(30), Kind: "Failed", Node: "a"},
		{At: at(40), Kind: "Started", Node: "b", Attempt: 2},
		{At: at(50), Kind: "Lost", Node: "b"},
		{At: at(60), Kind: "Started", Node: "a", Attempt: 3},
		{At: at(70), Kind: "Snoozed", Node: "a"},
		{At: at(75), Kind: "Suspended"},
		{At: at(80), Kind: "Resumed"},
		{At: at(90), Kind: "Started", Node: "b", Attempt: 4},
		{At: at(100), Kind: "Succeeded", Node: "b"},
	}
	d := timeline.Draw(moves, at(500), false, true)
	want := `: [waits to start 0-10] [waits to retry 30-40] [lost, waits for the next attempt 50-60] ` +
		`[waits after a snooze 70-75] ` +
		`[suspended 75-80] [waits after a snooze 80-90]
a: [runs 10-30] [runs 60-70]
b: [runs 40-50] [runs 90-100]
`
	if got := told(d); got != want {
		t.Errorf("%s", got)
	}
	var ends []string
	for _, a := range d.Attempts {
		ends = append(ends, fmt.Sprint(a.Number, a.Node, a.End))
	}
	if got := strings.Join(ends, ", "); got != "1afailed, 2blost, 3asnoozed, 4bsucceeded" {
		t.Error(got)
	}
}

func TestDraw_OfATaskThatGoesOnLastsUntilNow(t *testing.T) {
	moves := []timeline.Move{
		{At: at(0), Kind: "Created"},
		{At: at(50), Kind: "Started", Node: "a", Attempt: 1},
	}
	if got := told(timeline.Draw(moves, at(100), false, false)); got != ": [waits to start 0-50]\na: [runs 50-100+]\n" {
		t.Error(got)
	}
	moves = append(moves, timeline.Move{At: at(60), Kind: "Succeeded", Node: "a", Next: true})
	if got := told(timeline.Draw(moves, at(120), false, false)); !strings.HasPrefix(got, ": [waits to start 0-42] [waits to repeat 50-100+]") {
		t.Error(got)
	}
	ended := timeline.Draw([]timeline.Move{
		{At: at(0), Kind: "Created"},
		{At: at(10), Kind: "Started", Node: "a", Attempt: 1},
		{At: at(20), Kind: "Failed", Run: true},
	}, at(100), false, true)
	if got := told(ended); got != ": [waits to start 0-50]\na: [runs 50-100]\n" {
		t.Error(got)
	}
}

// What an attempt tells, and how it ends, says that it has run since the first event of a page.
func TestDraw_BeginsWithTheAttemptThatHasStartedBefore(t *testing.T) {
	progress := timeline.Move{At: at(10), Kind: "Progressed", Node: "a"}
	for name, row := range map[string]struct {
		moves []timeline.Move
		want  string
	}{
		"progress": {[]timeline.Move{{At: at(0), Kind: "Joined"}, progress}, "a: [runs 0-100+]\n"},
		"an outcome": {
			[]timeline.Move{{At: at(0), Kind: "Merged"}, {At: at(10), Kind: "Failed", Node: "a"}},
			": [waits to retry 50-100+]\na: [runs 0-50]\n",
		},
		"a start":            {[]timeline.Move{{At: at(0), Kind: "Joined"}, {At: at(10), Kind: "Started", Node: "b"}, progress}, "b: [runs 50-100+]\n"},
		"the end of a wait":  {[]timeline.Move{{At: at(0), Kind: "Joined"}, {At: at(10), Kind: "Failed", Run: true}}, ""},
		"nothing of a phase": {[]timeline.Move{{At: at(0), Kind: "Joined"}}, ""},
	} {
		d := timeline.Draw(row.moves, at(20), true, false)
		if got := told(d); got != row.want {
			t.Errorf("%s: %s", name, got)
		}
		if n := len(d.Attempts); n != strings.Count(row.want, "runs") || name == "an outcome" && d.Attempts[0].End != "failed" {
			t.Errorf("%s: %+v", name, d.Attempts)
		}
	}
	if got := told(timeline.Draw([]timeline.Move{{At: at(0), Kind: "Progressed", Node: "a"}, progress}, time.Time{}, true, false)); got != "a: [runs 0-100+]\n" {
		t.Errorf("of older events alone: %s", got)
	}
}

func TestDraw_OfNothingOrAMomentIsEmpty(t *testing.T) {
	if d := timeline.Draw(nil, at(1), false, false); len(d.Lanes) != 0 {
		t.Errorf("%+v", d)
	}
	d := timeline.Draw([]timeline.Move{{At: at(0), Kind: "Created"}}, at(0), false, false)
	if len(d.Lanes) != 1 || len(d.Ticks) != 0 {
		t.Errorf("%+v", d)
	}
}

// A task that repeats each second has more phases than a screen has room for: columns sum them.
func TestDraw_SumsPhasesThatAreTooMany(t *testing.T) {
	var moves []timeline.Move
	const runs = 500
	for i := range runs {
		moves = append(moves,
			timeline.Move{At: at(4 * i), Kind: "Started", Node: "a", Attempt: uint32(i + 1)},
			timeline.Move{At: at(4*i + 1), Kind: "Succeeded", Node: "a", Next: true})
	}
	d := timeline.Draw(moves, at(4*runs), true, false)
	if len(d.Lanes) != 2 || len(d.Attempts) != runs {
		t.Fatalf("%d lanes, %d attempts", len(d.Lanes), len(d.Attempts))
	}
	for i, share := range []float64{0.75, 0.25} {
		bars := d.Lanes[i].Bars
		phases := 0
		for j, b := range bars {
			if phases += b.Phases; math.Abs(b.Share-share) > 0.11 || b.X != 0.5*float64(j) || b.Width != 0.5 || b.To.Sub(b.From) != 10*time.Second {
				t.Errorf("column %d of lane %q: %+v", j, d.Lanes[i].Name, b)
			}
		}
		if len(bars) != 200 || phases < runs || phases > runs+200 || !bars[199].Open && i == 0 {
			t.Errorf("lane %q: %d columns of %d phases", d.Lanes[i].Name, len(bars), phases)
		}
	}
	if got := fmt.Sprint(d.Sums); got != "[{succeeded 500 8m20s} {waits to repeat 500 25m0s}]" {
		t.Error(got)
	}
}

func TestDraw_SumsAttemptsByTheirEndsAndWaits(t *testing.T) {
	d := timeline.Draw([]timeline.Move{
		{At: at(0), Kind: "Created"},
		{At: at(10), Kind: "Started", Node: "a", Attempt: 1},
		{At: at(30), Kind: "Failed", Node: "a"},
		{At: at(40), Kind: "Started", Node: "b", Attempt: 2},
		{At: at(45), Kind: "Failed", Node: "b"},
		{At: at(50), Kind: "Started", Node: "b", Attempt: 3},
	}, at(60), false, false)
	if got := fmt.Sprint(d.Sums); got != "[{waits to start 1 10s} {failed 2 25s} {waits to retry 2 15s} {runs 1 10s}]" {
		t.Error(got)
	}
}

func TestDraw_OfATaskThatIsSuspendedWhileItRunsIsSuspendedOnceTheAttemptHasEnded(t *testing.T) {
	moves := []timeline.Move{
		{At: at(0), Kind: "Created"},
		{At: at(10), Kind: "Started", Node: "a", Attempt: 1},
		{At: at(20), Kind: "Suspended"},
		{At: at(30), Kind: "Failed", Node: "a", Next: true},
		{At: at(40), Kind: "Rescheduled", Next: true},
		{At: at(100), Kind: "Resumed"},
		{At: at(105), Kind: "Started", Node: "a", Attempt: 2},
		{At: at(106), Kind: "Suspended"},
		{At: at(110), Kind: "Succeeded", Node: "a"},
	}
	d := timeline.Draw(moves, at(200), false, true)
	const want = "[{waits to start 1 10s} {failed 1 20s} {suspended 1 1m10s} {waits to retry 1 5s} {succeeded 1 5s}]"
	if got := fmt.Sprint(d.Sums); got != want {
		t.Error(got)
	}
}

func TestDraw_OfATaskWhoseTimeIsChangedWaitsForTheSame(t *testing.T) {
	created := timeline.Move{At: at(0), Kind: "Created"}
	started := timeline.Move{At: at(10), Kind: "Started", Node: "a", Attempt: 1}
	for want, moves := range map[string][]timeline.Move{
		"[{waits to start 1 20s}]": {
			created,
			{At: at(5), Kind: "Rescheduled", Next: true},
		},
		"[{waits to start 1 5s}]": {
			created,
			{At: at(5), Kind: "Rescheduled"},
		},
		"[{waits to start 1 10s} {failed 1 2s} {waits to retry 1 5s}]": {
			created, started,
			{At: at(12), Kind: "Failed", Node: "a", Run: true},
			{At: at(15), Kind: "Rescheduled", Next: true},
		},
		"[{waits to start 1 10s} {succeeded 1 2s} {waits to repeat 1 5s}]": {
			created, started,
			{At: at(12), Kind: "Succeeded", Node: "a"},
			{At: at(15), Kind: "Rescheduled", Next: true},
		},
		"[{waits to start 1 5s} {suspended 1 15s}]": {
			created,
			{At: at(5), Kind: "Suspended"},
			{At: at(10), Kind: "Rescheduled", Next: true},
		},
	} {
		d := timeline.Draw(moves, at(20), false, false)
		if got := fmt.Sprint(d.Sums); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestDraw_Of25AttemptsOverFiveNodesTellsEachApart(t *testing.T) {
	moves := []timeline.Move{{At: at(0), Kind: "Created"}}
	for i := range 25 {
		node := string(rune('a' + i%5))
		moves = append(moves,
			timeline.Move{At: at(10*i + 1), Kind: "Started", Node: node, Attempt: uint32(i + 1)},
			timeline.Move{At: at(10*i + 8), Kind: "Failed", Node: node})
	}
	d := timeline.Draw(moves, at(300), false, true)
	bars := 0
	for _, l := range d.Lanes[1:] {
		for _, b := range l.Bars {
			if bars++; b.Attempt == 0 || b.Phases != 0 || b.Height() != 1 || b.Width < 1 {
				t.Errorf("%+v", b)
			}
		}
	}
	if len(d.Lanes) != 6 || bars != 25 || len(d.Attempts) != 25 {
		t.Errorf("%d lanes, %d bars, %d attempts", len(d.Lanes), bars, len(d.Attempts))
	}
}

// Whatever happened, and whenever the clocks say so, a drawing has its bars within it, and few ticks.
func TestDraw_KeepsToItsBounds(t *testing.T) {
	kinds := []string{"Created", "Started", "Succeeded", "Failed", "Lost", "Snoozed", "Released", "Suspended", "Resumed", "Rescheduled", "Merged"}
	rapid.Check(t, func(t *rapid.T) {
		var moves []timeline.Move
		when := began
		for range rapid.IntRange(0, 500).Draw(t, "moves") {
			when = when.Add(time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(0, 55).Draw(t, "length")).Draw(t, "step")))
			moves = append(moves, timeline.Move{
				At:      when,
				Kind:    rapid.SampledFrom(kinds).Draw(t, "kind"),
				Node:    rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "node"),
				Attempt: rapid.Uint32().Draw(t, "attempt"),
				Run:     rapid.Bool().Draw(t, "run"),
				Next:    rapid.Bool().Draw(t, "next"),
			})
		}
		d := timeline.Draw(moves, when.Add(time.Hour), rapid.Bool().Draw(t, "cut"), rapid.Bool().Draw(t, "ended"))
		if len(d.Ticks) > 7 {
			t.Errorf("%d ticks", len(d.Ticks))
		}
		for _, l := range d.Lanes {
			if len(l.Bars) > 200 {
				t.Errorf("%d bars", len(l.Bars))
			}
			for _, b := range l.Bars {
				if h := b.Height(); h <= 0 || h > 1 {
					t.Errorf("%+v", b)
				}
				if math.IsNaN(b.X) || b.X < -0.001 || b.X+b.Width > 100.001 || b.Width <= 0 {
					t.Errorf("%+v", b)
				}
			}
		}
	})
}
