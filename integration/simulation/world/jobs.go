package world

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/task"
	works "taskledger/work"
)

// job is the parameters of a task: what its function does.
type job struct {
	Work   int    `json:"work,omitempty"`   // milliseconds that an attempt takes
	Fails  int    `json:"fails,omitempty"`  // attempts of a run that fail before one succeeds
	Dooms  int    `json:"dooms,omitempty"`  // attempts of the life that fail for good
	Snooze int    `json:"snooze,omitempty"` // attempts of the life that snooze first
	Runs   int    `json:"runs,omitempty"`   // attempts of the life up to which each success has a next run
	Panics bool   `json:"panics,omitempty"` // failed attempts panic
	Ends   string `json:"ends,omitempty"`   // how attempts end, a letter each, and again from the first one; "" = as the rest says
	Pad    string `json:"pad,omitempty"`

	Changes int `json:"changes,omitempty"` // of a work: its items below this number make a change
	Breaks  int `json:"breaks,omitempty"`  // of a work: attempts of a task whose iterators fail
	Odd     int `json:"odd,omitempty"`     // of a stream: 1 = changes fail for a while, 2 = some for longer; Fails counts how often
}

// jobBehavior is a behavior on one process. It implements task.Behavior.
type jobBehavior struct {
	id     string
	policy task.Policy
	record *recorder
	killed context.Context // of the process
}

// mergingBehavior is a behavior that combines parameters. It implements task.Merger.
type mergingBehavior struct{ jobBehavior }

// Merge implements task.Merger: the longer work wins.
func (*mergingBehavior) Merge(stored, requested []byte) ([]byte, error) {
	var a, b job
	if err := json.Unmarshal(stored, &a); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(requested, &b); err != nil {
		return nil, err
	}
	a.Work = max(a.Work, b.Work)
	return json.Marshal(a)
}

// The behaviors.
const (
	once  = "once"  // a submit that meets a final record returns its outcome
	again = "again" // it runs the task again
	brief = "brief" // attempts have a time-out, and a shard keeps one task that has ended
	merge = "merge" // it combines parameters
	every = "every" // its policy lets another run follow each
)

// How attempts end, as job.Ends has it.
const (
	succeeds = 's'
	chooses  = 'c' // it succeeds, and says itself when the next run begins
	fails    = 'f' // it is tried again, while its policy allows
	dooms    = 'd' // it fails for good
	rejects  = 'r' // it fails since it does not understand its parameters
	panics   = 'p'
	snoozes  = 'z'
	outlasts = 'o' // it is not done when its time is out
)

// allEndings has a letter of each ending.
const allEndings = "scfdrpzo"

// outlasted is the time-out of what is repeated; what outlasts it takes twice as long.
const outlasted = 800 * time.Millisecond

// behaviorsOf returns the behaviors of a process, which is killed when a context ends. Its streams read feeds.
func behaviorsOf(killed context.Context, r *recorder, feeds *changeLogs) []task.Behavior {
	backoff := task.Backoff{Base: 200 * time.Millisecond, Max: time.Second}
	return append(errands(killed, r, feeds),
		&jobBehavior{once, task.Policy{MaxAttempts: 3, MaxLost: 3, LostDelay: time.Millisecond, Backoff: backoff}, r, killed},
		&jobBehavior{again, task.Policy{MaxAttempts: 4, Backoff: backoff, Existing: events.RunAgain, MaxLost: 5, LostDelay: 100 * time.Millisecond}, r, killed},
		&jobBehavior{brief, task.Policy{MaxAttempts: 2, MaxLost: 5, LostDelay: 10 * time.Millisecond, Backoff: backoff, Timeout: 700 * time.Millisecond,
			Priority: 5, RetainCount: 1}, r, killed},
		&jobBehavior{every, task.Policy{MaxAttempts: 2, MaxLost: 1, LostDelay: time.Millisecond, Backoff: backoff, Existing: events.RunAgain,
			Timeout: outlasted, Every: 700 * time.Millisecond}, r, killed},
		&mergingBehavior{jobBehavior{merge, task.Policy{MaxAttempts: 3, MaxLost: 5, LostDelay: 10 * time.Millisecond, Backoff: backoff, Existing: events.RunAgain}, r, killed}},
	)
}

// varied is a behavior as another release might have it, which lets more attempts be lost.
func varied(b task.Behavior, losses int) task.Behavior {
	switch b := b.(type) {
	case *jobBehavior:
		return b.allowing(losses)
	case *mergingBehavior:
		return &mergingBehavior{*b.allowing(losses)}
	case *errand[step], *errand[works.Change[value]]:
		return b
	}
	panic("no behavior of this package")
}

// allowing is the work with more losses allowed.
func (b *jobBehavior) allowing(losses int) *jobBehavior {
	other := *b
	if losses > 0 {
		other.policy.MaxLost += losses
	}
	return &other
}

// ID implements task.Behavior.
func (b *jobBehavior) ID() string { return b.id }

// Types implements task.Behavior.
func (b *jobBehavior) Types() string { return "job string" }

// Policy implements task.Behavior.
func (b *jobBehavior) Policy() task.Policy { return b.policy }

// Plan implements task.Behavior.
func (b *jobBehavior) Plan([]byte, time.Time) (task.Plan, error) { return task.Plan{}, nil }

// Run implements task.Behavior. What it returns, and when, goes into the record.
func (b *jobBehavior) Run(ctx context.Context, a task.Attempt) task.Outcome {
	at := b.record.Begin(ctx, a)
	out, stopped := b.attempt(ctx, a)
	if b.killed.Err() != nil {
		return out // its process died with it
	}
	e := history.Execution{Final: out.Err != nil && out.Wait == 0, Wait: int64(out.Wait)}
	if !stopped {
		e.Outcome = outcomeOf(out)
	}
	panics := out.Err != nil && !stopped && !e.Final && out.Err.Code == events.CodePanic
	if panics {
		e.Wait = 0 // who panics asks for nothing
	}
	b.record.End(at, e)
	if panics {
		panic("as planned")
	}
	return out
}

func outcomeOf(out task.Outcome) string {
	switch {
	case out.Snooze > 0:
		return ""
	case out.Err != nil:
		return "!" + out.Err.Code
	}
	return "=" + string(out.Result)
}

// attempt does the job; stopped means that it was told to.
func (b *jobBehavior) attempt(ctx context.Context, a task.Attempt) (out task.Outcome, stopped bool) {
	var j job
	if err := json.Unmarshal(a.Params, &j); err != nil {
		return task.Outcome{Err: &events.Error{Code: events.CodeRejected, Message: err.Error()}}, false
	}
	a.Progress(0, 1, "")
	end := j.end(a.Number)
	takes := time.Duration(j.Work) * time.Millisecond
	if end == outlasts {
		takes = 2 * outlasted
	}
	select {
	case <-ctx.Done():
		return task.Outcome{Err: &events.Error{Code: events.CodeFailed, Message: "told to stop"}, Wait: b.later(a)}, true
	case <-time.After(takes):
	}
	switch {
	case end == rejects:
		return task.Outcome{Err: &events.Error{Code: events.CodeRejected, Message: "not understood"}}, false
	case a.Number <= j.Snooze || end == snoozes:
		return task.Outcome{Snooze: 200 * time.Millisecond}, false
	case a.Number <= j.Dooms || end == dooms:
		return task.Outcome{Err: &events.Error{Code: "doomed", Message: "for good"}}, false
	case a.Failures < j.Fails || end == fails || end == panics:
		code := "unlucky"
		if b.later(a) > 0 && (j.Panics || end == panics) {
			code = events.CodePanic
		}
		return task.Outcome{Err: &events.Error{Code: code, Message: "for now", Retryable: true}, Wait: b.later(a)}, false
	}
	out.Result = fmt.Appendf(nil, "%q", a.Token)
	if a.Number < j.Runs || end == chooses {
		out.Wait = 300 * time.Millisecond
	}
	return out, false
}

// end returns the ending of the attempt of a number; 0 = the rest of the job decides.
func (j *job) end(attempt int) byte {
	if j.Ends == "" {
		return 0
	}
	return j.Ends[(attempt-1)%len(j.Ends)]
}

// later is the wait for the next attempt of a run; 0 when its attempts are used up.
func (b *jobBehavior) later(a task.Attempt) time.Duration {
	if a.Failures+1 >= a.Policy.MaxAttempts {
		return 0
	}
	return a.Policy.Backoff.Base
}
