package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/integration/robustness/clock"
	"taskledger/integration/robustness/history"
	"taskledger/projection"
)

// Request is one call of a client.
type Request struct {
	Verb   history.Verb
	Task   string // "" = drawn by the client
	Again  bool   // of Submit: a final record gets a further run
	Params Params
	Delay  time.Duration
}

// Operation is the record of the request before it is made.
func (r Request) Operation(client int, begin int64) history.Operation {
	return history.Operation{Client: client, Verb: r.Verb, Task: r.Task, RunsAgain: r.Again, Delay: int64(r.Delay), Call: clock.Now() - begin}
}

// Do makes the request and records what came of it. The future is that of a Submit.
func (r Request) Do(ctx context.Context, c *engine.Client, op *history.Operation, begin int64) (f *engine.Future) {
	id := events.TaskID(r.Task)
	var err error
	switch r.Verb {
	case history.Submit:
		f, err = r.submit(ctx, c, op)
	case history.Wait:
		err = Wait(ctx, c.Attach(id), op)
	case history.Get:
		var t projection.Task
		if t, err = c.GetLinear(ctx, id); err == nil {
			op.Status, op.Attempt, op.Outcome = t.Status.String(), t.Attempt, OutcomeOf(&t)
		}
	case history.Cancel:
		err = c.Cancel(ctx, id, "")
	case history.Retry:
		err = c.Retry(ctx, id)
	case history.RunNow:
		err = c.RunNow(ctx, id)
	case history.Delete:
		err = c.Delete(ctx, id)
	case history.Suspend:
		err = c.Suspend(ctx, id)
	case history.Resume:
		err = c.Resume(ctx, id)
	default:
		panic("unknown verb " + r.Verb)
	}
	Settle(op, err, begin)
	return f
}

func (r Request) submit(ctx context.Context, c *engine.Client, op *history.Operation) (*engine.Future, error) {
	params, err := json.Marshal(r.Params)
	if err != nil {
		return nil, err
	}
	b := &Work{ID_: once}
	if r.Again {
		b.ID_ = again
	}
	o := engine.SubmitOptions{ID: events.TaskID(r.Task)}
	if r.Delay > 0 {
		o.NotBefore = time.Now().Add(r.Delay)
	}
	f, err := c.Submit(ctx, b, params, o)
	op.Task, op.Joined = string(f.ID()), f.Joined()
	return f, err
}

// Wait waits for the outcome of a future. A task that failed is no error.
func Wait(ctx context.Context, f *engine.Future, op *history.Operation) error {
	defer f.Close()
	result, err := f.Wait(ctx)
	var failure *engine.TaskError
	switch {
	case err == nil:
		op.Outcome = "=" + string(result)
	case errors.As(err, &failure):
		op.Outcome, err = "!"+failure.Code, nil
	}
	return err
}

// Settle records when and how an operation ended.
func Settle(op *history.Operation, err error, begin int64) {
	if op.Answer = answer(err); op.Answer != history.Unknown {
		op.Return = clock.Now() - begin
	}
	if err != nil {
		op.Error = err.Error()
	}
}

func answer(err error) history.Answer {
	var state *engine.StateError
	var overload *engine.OverloadError
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, engine.ErrUnknown):
		return history.Unknown
	case errors.Is(err, engine.ErrNotFound):
		return history.Absent
	case errors.As(err, &state), errors.As(err, &overload), errors.Is(err, engine.ErrUnavailable), errors.Is(err, engine.ErrClosed):
		return history.Refused
	}
	return history.Unknown
}

// OutcomeOf is the outcome of the last run of a task, as history.Operation has it; "" while it has none.
func OutcomeOf(t *projection.Task) string {
	switch t.Status {
	case projection.Success:
		text, err := t.Result.JSON()
		if err != nil {
			return fmt.Sprintf("=%v", err)
		}
		return "=" + string(text)
	case projection.Failure:
		return "!" + t.Error.Code
	}
	return ""
}
