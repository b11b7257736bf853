package traffic

import (
	"cmp"
	"context"
	"encoding/json"
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
	Named  bool   // of Submit: with a request key, that of its history.Operation
	Key    string // of Submit without Task: the request key; "" = that of its history.Operation
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
			op.Status, op.Attempt = t.Status.String(), t.Attempt
			op.Outcome, err = OutcomeOf(&t)
		}
	default:
		err = Operate(ctx, c, r.Verb, id)
	}
	Settle(op, err, begin)
	return f
}

func (r Request) behavior() string {
	if r.Again {
		return again
	}
	return once
}

// Ask gives the record of a submit that leaves the id to the engine the key that names its task, and says who asks for what.
func (r Request) Ask(op *history.Operation, principal, key string) {
	op.Request = cmp.Or(r.Key, key)
	op.By, op.Body = principal+" "+r.behavior(), fmt.Sprintf("%d ms, %d failures, %d repetitions, after %s", r.Params.Millis, r.Params.Fails, r.Params.Repeats, r.Delay)
}

func (r Request) submit(ctx context.Context, c *engine.Client, op *history.Operation) (*engine.Future, error) {
	params, err := json.Marshal(r.Params)
	if err != nil {
		return nil, err
	}
	f, err := c.Submit(ctx, &Work{ID_: r.behavior()}, params, engine.SubmitOptions{ID: events.TaskID(r.Task), RequestKey: op.Request, Delay: r.Delay})
	op.Task, op.Joined, op.Repeated = string(f.ID()), f.Joined(), f.Repeated()
	return f, err
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
	if op.Answer = Answer(err); op.Answer != history.Unknown {
		op.Return = clock.Now() - begin
	}
	if err != nil {
		op.Error = err.Error()
	}
}
