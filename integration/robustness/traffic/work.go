// Package traffic makes the load of a run under faults: the work that tasks do, a seeded mix of commands, and clients
// of task stores. It takes down what clients asked and were told, and what functions did.
package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/task"
)

// Params say what a task does.
type Params struct {
	Millis  int // how long an attempt works
	Fails   int `json:",omitempty"` // attempts of a run that fail first
	Repeats int `json:",omitempty"` // attempts of the life after which a success asks for no further run

	Pad string `json:",omitempty"` // means nothing: it makes journals grow
}

// The behaviors. The first two differ in what a submit does that meets a final record; regular is repeated by its
// policy until somebody cancels or deletes the task.
const (
	once    = "once"
	again   = "again"
	regular = "regular"
)

const (
	// maxAttempts is less than Params ask for now and then: some tasks fail for good.
	maxAttempts = 4
	repeatEvery = 300 * time.Millisecond
	// regularly is the time after a run of a regular task at which it is run again.
	regularly = 2 * time.Second
)

var backoff = task.Backoff{Base: 50 * time.Millisecond, Max: 400 * time.Millisecond}

// Report carries what a function tells of itself on a way that faults do not touch.
type Report struct {
	history.Execution
	Behavior string
	Goes     bool // End is 0 because it has just begun
	Last     bool // it asked for no further attempt or run
}

// Work is a behavior: its tasks do what Params say.
type Work struct {
	ID_    string
	Begin  int64        // of the run, as history.Now tells
	Report func(Report) // hears of every attempt before the engine hears of its outcome; nil where nothing runs
}

// ID implements task.Behavior.
func (w *Work) ID() string { return w.ID_ }

// Types implements task.Behavior.
func (w *Work) Types() string { return "" }

// Policy implements task.Behavior.
func (w *Work) Policy() task.Policy {
	p := task.Policy{MaxAttempts: maxAttempts, Backoff: backoff, MaxLost: 50, LostDelay: time.Millisecond}
	switch w.ID_ {
	case again:
		p.Existing = events.RunAgain
	case regular:
		p.Every, p.MaxLost = regularly, 1
	}
	return p
}

// Plan implements task.Behavior.
func (w *Work) Plan([]byte, time.Time) (task.Plan, error) { return task.Plan{}, nil }

// Run implements task.Behavior.
func (w *Work) Run(ctx context.Context, a task.Attempt) task.Outcome {
	return reporting(ctx, a, w.Begin, Report{Behavior: w.ID_}, w.Report, func() (task.Outcome, bool) { return attempt(ctx, a) })
}

// reporting runs an attempt, of a run that has begun then, and reports that it begins and how it ended; of says the
// behavior. told means that the attempt was told to stop.
func reporting(
	ctx context.Context, a task.Attempt, begin int64, of Report, report func(Report), run func() (out task.Outcome, told bool),
) task.Outcome {
	of.Execution = history.Execution{
		Task:    string(a.Task),
		Node:    SessionOf(ctx, a.Log),
		Token:   a.Token,
		Attempt: uint32(a.Number),
		Try:     uint32(a.Failures) + 1,
		Begin:   history.Now() - begin,
		Repeats: a.Policy.Every != 0,
	}
	of.Goes = true
	report(of)
	out, told := run()
	of.Goes, of.End, of.Releases = false, history.Now()-begin, out.Release
	if !told {
		of.Final, of.Wait = out.Err != nil && out.Wait == 0, int64(out.Wait)
	}
	if goesOn := told || out.Release || out.Snooze > 0; !goesOn {
		of.Outcome, of.Last = outcomeText(out), out.Wait == 0
	}
	report(of)
	return out
}

// attempt works; told means that it was told to stop.
func attempt(ctx context.Context, a task.Attempt) (out task.Outcome, told bool) {
	var p Params
	if err := json.Unmarshal(a.Params, &p); err != nil {
		return task.Outcome{Err: &events.Error{Code: events.CodeRejected, Message: err.Error()}}, false
	}
	timer := time.NewTimer(time.Duration(p.Millis) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return task.Outcome{Err: &events.Error{Code: events.CodeFailed, Message: context.Cause(ctx).Error()}}, true
	}
	if a.Failures < p.Fails {
		out.Err = &events.Error{Code: events.CodeFailed, Message: fmt.Sprint("failure ", a.Failures+1), Retryable: true}
		if a.Failures+1 < a.Policy.MaxAttempts {
			out.Wait = a.Policy.Backoff.Delay(a.Failures+1, 1)
		}
		return out, false
	}
	out.Result = fmt.Appendf(nil, "%q", a.Token)
	if a.Number <= p.Repeats {
		out.Wait = repeatEvery
	}
	return out, false
}

func outcomeText(out task.Outcome) string {
	if out.Err != nil {
		return "!" + out.Err.Code
	}
	return "=" + string(out.Result)
}
