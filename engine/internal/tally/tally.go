// Package tally counts what the owner of a shard commits. It gathers while an entry is decided, and counts once the
// entry is committed: an entry that was decided and not written is never counted.
package tally

import (
	"cmp"
	"slices"
	"time"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/meter"
	"taskledger/projection"
)

// Tally holds the counts of one owner. One goroutine at a time may use it.
type Tally struct {
	meter meter.Meter // nil = none
	rows  map[string]*row
	last  *row   // that was asked for
	fresh []*row // with something that is not counted yet

	front [len(meter.Counters)]int64 // what fronts count
	took  []took                     // what took fronts time

	due   events.Millis // of the task that is being started
	times []float64     // scratch
}

// took is a value of a histogram of no behavior.
type took struct {
	of      meter.Histogram
	seconds float64
}

// row holds the counts of a behavior.
type row struct {
	meter.Figures
	counts [meter.TaskCounters]int64
	times  [meter.TaskHistograms][]int64 // in milliseconds
	fresh  bool
}

// New returns the tally of an owner that has committed nothing. It passes all counts to a meter, unless that is nil.
func New(to meter.Meter) *Tally { return &Tally{meter: to, rows: map[string]*row{}} }

// Starts takes a task that is about to be started.
func (t *Tally) Starts(task *projection.Task) { t.due = task.Due }

// Note gathers an event and the task after it, nil for an event of none.
func (t *Tally) Note(task *projection.Task, ev *events.Event) {
	switch b := ev.Body.(type) {
	case *events.Created:
		t.count(task, meter.TasksCreated)
	case *events.Started:
		r := t.count(task, meter.AttemptsStarted)
		r.time(meter.Lateness, ev.At-t.due)
		if b.Attempt == 1 {
			r.time(meter.Wait, ev.At-task.CreatedAt)
		}
	case *events.Succeeded:
		t.count(task, meter.AttemptsSucceeded).time(meter.Duration, ev.At-task.StartedAt)
	case *events.Failed:
		r := t.count(task, meter.Failures)
		if b.Run != 0 && b.Next == 0 { // a repetition follows otherwise
			r.counts[meter.FinalFailures]++
		}
		switch b.Error.Code {
		case events.CodeCancelled, events.CodeLost, events.CodeDeadline: // they may end no attempt
		default:
			r.time(meter.Duration, ev.At-task.StartedAt)
		}
	case *events.Lost:
		t.count(task, meter.AttemptsLost)
	case *events.Snoozed:
		t.count(task, meter.AttemptsSnoozed)
	case *events.Released:
		t.count(task, meter.AttemptsReleased)
	case *events.Deleted:
		t.count(task, meter.TasksDeleted)
	}
}

// Refused gathers the submits of a batch that were refused. Callers may write any behavior: one that has no task
// here yet does not get figures of its own by being refused. known reports whether a behavior has tasks.
func (t *Tally) Refused(commands []command.Command, answers []command.Answer, known func(behavior string) bool) {
	for i := range answers {
		switch answers[i].Code {
		case command.AnswerOK, command.AnswerMerge, command.AnswerChanged, command.AnswerTryAgain:
			continue
		}
		var behavior string
		switch c := commands[i].(type) {
		case *command.Submit:
			behavior = c.Behavior
		case *command.Merge: // its second step
			if c.Operator {
				continue
			}
			behavior = c.Submit.Behavior
		default:
			continue
		}
		if t.rows[behavior] == nil && !known(behavior) {
			behavior = meter.Other
		}
		t.touch(t.row(behavior)).counts[meter.SubmitsRefused]++
	}
}

// Add gathers n for a counter of no behavior.
func (t *Tally) Add(c meter.Counter, n int64) { t.front[c] += n }

// Took gathers a time for a histogram of no behavior.
func (t *Tally) Took(h meter.Histogram, ms events.Millis) {
	t.took = append(t.took, took{h, float64(max(ms, 0)) / 1000})
}

// Committed counts an entry of n events, which it took so long to write.
func (t *Tally) Committed(n int, took time.Duration) {
	t.observe(meter.CommitLatency, took.Seconds())
	t.observe(meter.EntryEvents, float64(n))
}

// Served counts that a shard was taken over.
func (t *Tally) Served(took time.Duration) { t.observe(meter.TakeOver, took.Seconds()) }

func (t *Tally) observe(h meter.Histogram, value float64) {
	if t.meter == nil {
		return
	}
	t.times = append(t.times[:0], value)
	t.meter.Observe(h, "", t.times)
}

// Count counts what was gathered, once its entry is committed if there is one, with the outcomes and commands that
// were refused.
func (t *Tally) Count(stale, bugs int) {
	for _, r := range t.fresh {
		t.countRow(r)
	}
	t.fresh = t.fresh[:0]
	t.countFronts()
	if t.meter == nil {
		return
	}
	if stale > 0 {
		t.meter.Count(meter.OutcomesStale, "", int64(stale))
	}
	if bugs > 0 {
		t.meter.Count(meter.CommandsBugs, "", int64(bugs))
	}
}

// countFronts counts what fronts have gathered.
func (t *Tally) countFronts() {
	for c, n := range t.front {
		if n > 0 && t.meter != nil {
			t.meter.Count(meter.Counter(c), "", n)
		}
	}
	for _, v := range t.took {
		t.observe(v.of, v.seconds)
	}
	t.front, t.took = [len(meter.Counters)]int64{}, t.took[:0]
}

func (t *Tally) countRow(r *row) {
	r.fresh = false
	for c, n := range r.counts {
		if n == 0 {
			continue
		}
		r.Counts[c] += n
		r.counts[c] = 0
		if t.meter != nil {
			t.meter.Count(meter.Counter(c), r.Behavior, n)
		}
	}
	for h, times := range r.times {
		if len(times) == 0 {
			continue
		}
		t.times = t.times[:0]
		for _, ms := range times {
			r.Times[h].Add(ms)
			t.times = append(t.times, float64(ms)/1000)
		}
		r.times[h] = times[:0]
		if t.meter != nil {
			t.meter.Observe(meter.Histogram(h), r.Behavior, t.times)
		}
	}
}

// Figures returns the counts by behavior, in the form of messages.
func (t *Tally) Figures() (behaviors []string, numbers []int64) {
	all := make([]meter.Figures, 0, len(t.rows))
	for _, r := range t.rows {
		all = append(all, r.Figures)
	}
	slices.SortFunc(all, func(a, b meter.Figures) int { return cmp.Compare(a.Behavior, b.Behavior) })
	return meter.Pack(all)
}

// count gathers one for a counter of the task's behavior.
func (t *Tally) count(task *projection.Task, c meter.Counter) *row {
	r := t.touch(t.row(task.Kind.Behavior))
	r.counts[c]++
	return r
}

func (t *Tally) touch(r *row) *row {
	if !r.fresh {
		r.fresh = true
		t.fresh = append(t.fresh, r)
	}
	return r
}

func (r *row) time(h meter.Histogram, ms events.Millis) {
	r.times[h] = append(r.times[h], max(int64(ms), 0))
}

// row returns that of a behavior, meter.Other when there are too many.
func (t *Tally) row(behavior string) *row {
	if t.last != nil && t.last.Behavior == behavior {
		return t.last
	}
	r := t.rows[behavior]
	if r == nil && behavior != meter.Other && t.behaviors() >= meter.MaxBehaviors {
		return t.row(meter.Other)
	}
	if r == nil {
		r = &row{Figures: meter.Figures{Behavior: behavior}}
		t.rows[behavior] = r
	}
	t.last = r
	return r
}

// behaviors returns how many behaviors have a row.
func (t *Tally) behaviors() int {
	if t.rows[meter.Other] != nil {
		return len(t.rows) - 1
	}
	return len(t.rows)
}
