package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/history"
	"taskledger/task"
)

// Request is one call of a client.
type Request struct {
	Verb   history.Verb
	Task   string // "" = drawn by the client
	Again  bool   // of Submit: a final record gets a further run
	Repeat bool   // of Submit: the policy repeats the task
	Errand bool   // of Submit: it is a work
	Brook  bool   // of Submit: it is a stream
	Named  bool   // of Submit: with a request key, that of its history.Operation
	Key    string // of Submit without Task: the request key, "" = that of its history.Operation; of RunSchedule, "" = none
	Params Params
	Delay  time.Duration

	Priority int64  // of Submit; 0 = that of the behavior
	Behavior string // of Pause and Unpause
	Reason   string // of Pause, PauseSchedule and EndBackfill

	Schedule *Timing `json:",omitempty"` // of the verbs of schedules; nil for every other one

	By        string // principal of the caller who asks; "" = that of the client
	Traced    bool   // the caller gives a request id and a trace
	Forbidden string // the limit that it breaks; "" = none
}

// Operation is the record of the request before it is made.
func (r Request) Operation(client int, begin int64) history.Operation {
	op := history.Operation{Client: client, Verb: r.Verb, Task: r.Task, RunsAgain: r.Again || r.Errand || r.Brook, Options: history.Options{Delay: int64(r.Delay)}, Call: history.Now() - begin,
		Behavior: r.Behavior, Reason: r.Reason, Forbidden: r.Forbidden}
	if r.ofSettings() {
		op.Task = string(events.Settings)
	}
	if r.Verb.OfSchedule() {
		r.Schedule.record(&op)
	}
	return op
}

func (r Request) ofSettings() bool {
	return r.Verb == history.Pause || r.Verb == history.Unpause || r.Verb == history.Settings
}

// Do makes the request for the caller of its record, and records what came of it. A Submit and a RunSchedule return their
// futures.
func (r Request) Do(ctx context.Context, c *engine.Client, op *history.Operation, begin int64) (f *engine.Future) {
	ctx = engine.WithCaller(ctx, events.Caller{Principal: r.By, RequestID: op.Caller.RequestID, Traceparent: op.Caller.Traceparent})
	id := events.TaskID(r.Task)
	var err error
	if r.Verb.OfSchedule() {
		f, err = Schedule(ctx, c, op, r.Schedule.Definition, r.Reason)
		Settle(op, err, begin)
		return f
	}
	switch r.Verb {
	case history.Submit:
		f, err = r.submit(ctx, c, op)
	case history.Wait:
		err = Wait(ctx, c.Attach(id), op)
	case history.Get:
		var t task.Task
		if t, err = c.GetLinear(ctx, id); err == nil {
			Shown(op, &t)
		}
	case history.Pause:
		err = c.Operations().Pause(ctx, r.Behavior, r.Reason)
	case history.Unpause:
		err = c.Operations().Unpause(ctx, r.Behavior)
	case history.Settings:
		op.Paused, err = Paused(ctx, c)
	default:
		err = Operate(ctx, c, r.Verb, id)
	}
	Settle(op, err, begin)
	return f
}

func (r Request) behavior() string {
	switch {
	case r.Repeat:
		return regular
	case r.Errand:
		return ErrandID
	case r.Brook:
		return BrookID
	case r.Again:
		return again
	}
	return once
}

// Ask records who asks, with a client of the principal, and under which request key; no other operation has the key.
// The trace has it, too.
func (r Request) Ask(op *history.Operation, principal, key string) {
	op.Caller.Principal = cmp.Or(r.By, principal)
	if r.Traced {
		op.Caller.RequestID, op.Caller.Traceparent = key, "00-"+key+"-01"
	}
	switch {
	case r.Verb == history.RunSchedule:
		op.Request = r.Key
	case r.Named:
		op.Request = key
	case r.Verb == history.Submit && r.Task == "":
		op.Request = cmp.Or(r.Key, key)
		op.By = op.Caller.Principal + " " + r.behavior()
		op.Body = fmt.Sprintf("%d ms, %d failures, %d repetitions, after %s, priority %d", r.Params.Millis, r.Params.Fails, r.Params.Repeats, r.Delay, r.Priority)
	}
}

func (r Request) submit(ctx context.Context, c *engine.Client, op *history.Operation) (*engine.Future, error) {
	params, err := json.Marshal(r.Params)
	if err != nil {
		return nil, err
	}
	var w task.Behavior = &Work{ID_: r.behavior()}
	switch {
	case r.Errand:
		w = newErrand(0, nil)
	case r.Brook:
		w = newBrook(0, nil)
	}
	op.Terms = Terms(w.Policy(), r.Priority)
	f, err := c.Submit(ctx, w, params, task.SubmitOptions{ID: events.TaskID(r.Task), RequestKey: op.Request, Delay: r.Delay, Priority: r.Priority})
	op.Task, op.Joined, op.Repeated = string(f.ID()), f.Joined(), f.Repeated()
	return f, err
}

// Terms returns the terms that a submit brings with a policy, and a priority that it gives itself; 0 = none.
func Terms(p task.Policy, priority int64) string {
	full, err := p.Complete()
	if err != nil {
		panic(err) // the policies of the harnesses are in range
	}
	return history.TermsOf(&full, cmp.Or(priority, full.Priority))
}

// Wait waits for the outcome of a future. A task that failed is no error.
func Wait(ctx context.Context, f *engine.Future, op *history.Operation) error {
	defer f.Close()
	outcome, err := Outcome(f.Wait(ctx))
	op.Outcome = outcome
	return err
}

// Settle records when and how an operation ended.
func Settle(op *history.Operation, err error, begin int64) {
	op.OtherRequest = OtherRequest(err)
	if op.Answer = Answer(err); op.Answer != history.Unknown {
		op.Return = history.Now() - begin
	}
	if err != nil {
		op.Error = err.Error()
	}
}
