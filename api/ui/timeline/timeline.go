// Package timeline lays out the life of a task: its attempts as bars to scale, a lane for each node, and above them a
// lane with its waits, each a phase of its own. It draws nothing: a template makes SVG of the numbers. It is pure.
package timeline

import (
	"math"
	"slices"
	"time"
)

// Move is an event of a task. One that begins, ends or tells of no phase is left out of the drawing.
type Move struct {
	At      time.Time
	Kind    string // as events name it
	Node    string // of the attempt that it is about
	Attempt uint32 // that Started begins
	Run     bool   // an outcome ends a run: what failed is not tried again
	Next    bool   // a further run has its time
}

// Drawing is a timeline. Places along it are percent of its width.
type Drawing struct {
	From, To time.Time
	Cut      bool // there is something before From
	Lanes    []Lane
	Ticks    []Tick
	Attempts []Attempt // in the order of their starts
	Sums     []Sum     // of attempts by their ends, and of waits by what was waited for
}

// Lane is the phases of one node, or the waits.
type Lane struct {
	Name string // of the node; "" = the waits
	Bars []Bar  // its phases, or, where they are too many to be told apart, columns that sum them
}

// Bar is a phase, or a column: the phases of a stretch of time together.
type Bar struct {
	X, Width float64 // percent
	Phase    string
	From, To time.Time
	Attempt  int // its number, or Unknown; 0 = it is a wait, or a column
	Open     bool
	Phases   int     // counts those of a column; 0 = it is none
	Share    float64 // the part of the time of a column that its phases take
}

// Unknown is the number of an attempt that has started before the events of a drawing.
const Unknown = -1

// Sum adds up the attempts that have ended in one way, or the waits for one thing.
type Sum struct {
	Name  string
	Count int
	Took  time.Duration
}

// Tick is a moment of the scale.
type Tick struct {
	X  float64
	At time.Time
}

// Attempt is an attempt of the drawing.
type Attempt struct {
	Number   int // or Unknown: it has started before From
	Node     string
	From, To time.Time // zero To: it runs
	End      string    // how it has ended; "" = it runs
}

// The phases. What a wait is called says what the task waits for.
const (
	Waits     = "waits to start"
	Retry     = "waits to retry"
	Snoozed   = "waits after a snooze"
	Lost      = "lost, waits for the next attempt"
	Released  = "waits after a release"
	Suspended = "suspended"
	Repeats   = "waits to repeat"
	Runs      = "runs"
	Ended     = "" // nothing is drawn
)

// after says how an attempt has ended by the kind of an event, and the phase that follows.
var after = map[string]struct{ end, phase string }{
	"Succeeded": {"succeeded", Repeats},
	"Failed":    {"failed", Retry},
	"Snoozed":   {"snoozed", Snoozed},
	"Lost":      {"lost", Lost},
	"Released":  {"released", Released},
}

const (
	// narrowest is the least width of a bar, in percent: shorter phases are seen, too.
	narrowest = 0.4
	// mostBars bounds the bars of a lane: more phases are drawn as so many columns.
	mostBars = 200
	// leastShare is the least height of a column that has a phase, as a part of the whole.
	leastShare = 0.1
)

// Draw lays out the events of a task, oldest first, until now. cut says that there are older ones. ended says that the
// task does not go on after the last of them.
func Draw(moves []Move, now time.Time, cut, ended bool) Drawing {
	if len(moves) == 0 {
		return Drawing{}
	}
	d := drawer{Drawing: Drawing{From: moves[0].At, To: moves[len(moves)-1].At, Cut: cut}}
	if !ended && now.After(d.To) {
		d.To = now
	}
	d.lanes = map[string]int{"": 0}
	d.Lanes = []Lane{{}}
	d.first(moves)
	for _, m := range moves {
		d.move(m)
	}
	if !ended {
		d.end(d.To, true)
	}
	d.place()
	return d.Drawing
}

// drawer is a drawing that is being made.
type drawer struct {
	Drawing
	lanes map[string]int
	phase Bar
	node  string
	held  string // the phase that goes on when the task is resumed

	suspended bool // the task is: an attempt that runs goes on nevertheless
	failed    bool // the last attempt that has ended has
}

func (d *drawer) begin(at time.Time, phase string, attempt int, node string) {
	d.phase = Bar{Phase: phase, From: at, Attempt: attempt}
	d.node = node
}

// first begins the drawing with the phase that the first event about a phase tells of: one of an attempt that has not
// started among the events says that it runs.
func (d *drawer) first(moves []Move) {
	d.begin(d.From, Ended, 0, "")
	if moves[0].Kind == "Created" {
		d.begin(d.From, Waits, 0, "")
		return
	}
	i := slices.IndexFunc(moves, func(m Move) bool {
		_, ends := after[m.Kind]
		return ends || m.Kind == "Started" || m.Kind == "Progressed"
	})
	if i < 0 || moves[i].Kind == "Started" || moves[i].Node == "" {
		return
	}
	d.begin(d.From, Runs, Unknown, moves[i].Node)
	d.Attempts = append(d.Attempts, Attempt{Number: Unknown, Node: moves[i].Node, From: d.From})
}

// end draws the phase that has lasted until now.
func (d *drawer) end(at time.Time, open bool) {
	if d.phase.Phase == Ended {
		return
	}
	lane, known := d.lanes[d.node]
	if !known {
		lane = len(d.Lanes)
		d.lanes[d.node] = lane
		d.Lanes = append(d.Lanes, Lane{Name: d.node})
	}
	d.phase.To, d.phase.Open = at, open
	d.Lanes[lane].Bars = append(d.Lanes[lane].Bars, d.phase)
	if d.phase.Attempt == 0 || open {
		d.sum(d.phase.Phase, at)
	}
}

// sum counts the phase that has lasted until now under a name.
func (d *drawer) sum(name string, at time.Time) {
	i := slices.IndexFunc(d.Sums, func(s Sum) bool { return s.Name == name })
	if i < 0 {
		i, d.Sums = len(d.Sums), append(d.Sums, Sum{Name: name})
	}
	d.Sums[i].Count++
	d.Sums[i].Took += max(0, at.Sub(d.phase.From))
}

func (d *drawer) move(m Move) {
	next, ends := after[m.Kind]
	switch {
	case m.Kind == "Started":
		d.end(m.At, false)
		d.begin(m.At, Runs, int(m.Attempt), nodeOf(m))
		d.Attempts = append(d.Attempts, Attempt{Number: int(m.Attempt), Node: m.Node, From: m.At})
	case ends:
		d.end(m.At, false)
		if d.phase.Attempt != 0 {
			d.sum(next.end, m.At)
		}
		if n := len(d.Attempts); n > 0 && d.Attempts[n-1].End == "" {
			d.Attempts[n-1].To, d.Attempts[n-1].End = m.At, next.end
		}
		d.failed = m.Kind == "Failed"
		phase := next.phase
		if m.Run || m.Kind == "Succeeded" {
			phase = afterRun(m)
		}
		if d.suspended && phase != Ended {
			d.held, phase = phase, Suspended
		}
		d.begin(m.At, phase, 0, "")
	case m.Kind == "Suspended":
		d.suspended = true
		if d.phase.Attempt == 0 {
			d.held = d.phase.Phase
			d.end(m.At, false)
			d.begin(m.At, Suspended, 0, "")
		}
	case m.Kind == "Resumed":
		d.suspended = false
		if d.phase.Phase == Suspended {
			d.end(m.At, false)
			d.begin(m.At, d.held, 0, "")
		}
	case m.Kind == "Rescheduled" && d.phase.Phase == Suspended:
		d.held = d.rescheduled(d.held, m)
	case m.Kind == "Rescheduled" && d.phase.Attempt == 0:
		if phase := d.rescheduled(d.phase.Phase, m); phase != d.phase.Phase {
			d.end(m.At, false)
			d.begin(m.At, phase, 0, "")
		}
	}
}

// rescheduled is the phase after one of a task that does not run, as its next run gets another time, or none.
func (d *drawer) rescheduled(phase string, m Move) string {
	switch {
	case !m.Next:
		return Ended
	case phase != Ended:
		return phase
	case d.failed:
		return Retry
	}
	return Repeats
}

// afterRun is the phase between two runs.
func afterRun(m Move) string {
	if m.Next {
		return Repeats
	}
	return Ended
}

func nodeOf(m Move) string {
	if m.Node == "" {
		return "(unknown)"
	}
	return m.Node
}

// place gives bars and ticks their places along the drawing, and drops a lane of waits without any.
func (d *drawer) place() {
	whole := d.To.Sub(d.From)
	at := func(t time.Time) float64 {
		if whole <= 0 {
			return 0
		}
		return 100 * float64(t.Sub(d.From)) / float64(whole)
	}
	for i := range d.Lanes {
		if len(d.Lanes[i].Bars) > mostBars {
			d.Lanes[i].Bars = d.columns(d.Lanes[i].Bars)
			continue
		}
		for j := range d.Lanes[i].Bars {
			b := &d.Lanes[i].Bars[j]
			b.X = at(b.From)
			b.Width = max(at(b.To)-b.X, narrowest)
			b.X = min(b.X, 100-b.Width)
		}
	}
	d.Lanes = slices.DeleteFunc(d.Lanes, func(l Lane) bool { return len(l.Bars) == 0 })
	step := stepOf(whole)
	if step <= 0 {
		return
	}
	for t := d.From.Truncate(step).Add(step); t.Before(d.To); t = t.Add(step) {
		d.Ticks = append(d.Ticks, Tick{at(t), t})
	}
}

// columns sums phases, in their order, by mostBars stretches of the drawing. A stretch without any has no column.
func (d *drawer) columns(phases []Bar) (columns []Bar) {
	whole := d.To.Sub(d.From)
	if whole <= 0 {
		return phases[:mostBars]
	}
	width := 100.0 / mostBars
	var all [mostBars]Bar
	place := func(t time.Time) float64 { return mostBars * float64(t.Sub(d.From)) / float64(whole) }
	for _, b := range phases {
		from, to := place(b.From), place(b.To)
		for i := max(0, int(from)); i < mostBars && (float64(i) < to || i == int(from)); i++ {
			all[i].Phases++
			all[i].Share += max(0, min(to, float64(i+1))-max(from, float64(i)))
			all[i].Open = all[i].Open || b.Open
		}
	}
	for i := range all {
		c := &all[i]
		if c.Phases == 0 {
			continue
		}
		c.X, c.Width = float64(i)*width, width
		c.Share = min(c.Share, 1)
		c.From = d.From.Add(time.Duration(float64(whole) * float64(i) / mostBars))
		c.To = d.From.Add(time.Duration(float64(whole) * float64(i+1) / mostBars))
		columns = append(columns, *c)
	}
	return columns
}

// Height is the height of the bar as a part of the lane's.
func (b Bar) Height() float64 {
	if b.Phases == 0 {
		return 1
	}
	return max(b.Share, leastShare)
}

// steps are the distances between ticks.
var steps = []time.Duration{
	time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute,
	time.Hour, 3 * time.Hour, 12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour,
	365 * 24 * time.Hour, 3650 * 24 * time.Hour,
}

// mostTicks bounds the ticks of a drawing.
const mostTicks = 6

// stepOf returns the smallest distance of ticks of which no more than mostTicks fit a length of time.
func stepOf(whole time.Duration) time.Duration {
	for _, step := range steps {
		if math.Ceil(float64(whole)/float64(step)) <= mostTicks {
			return step
		}
	}
	return whole
}
