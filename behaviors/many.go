package behaviors

import (
	"context"
	"fmt"

	"taskledger/store"
	"taskledger/task"
)

// Result holds the outcome of one submit of SubmitMany. Its Future is never nil: after an error its Wait returns that
// error.
type Result[R any] struct {
	*Future[R]
	Err error // what Submit would have returned
}

// SubmitMany is SubmitWith for up to 1,000 parameters at once, which costs less than one by one: see
// engine.Client.SubmitMany. It returns a result for each, in their order. o holds for every one of them, but its
// request key covers all of them together, as ManyOptions.RequestKey of package task does. An id in o is refused: all
// of them would have it.
func (b *Behavior[P, R]) SubmitMany(ctx context.Context, to Client, params []P, o task.SubmitOptions) []Result[R] {
	many := task.ManyOptions{RequestKey: o.RequestKey}
	o.RequestKey = ""
	all := make([]Result[R], len(params))
	requests := make([]task.Request, 0, len(params))
	of := make([]int, 0, len(params)) // the index in params of each request
	bound := b.Bind(nil)
	var wrong error // why none is submitted
	if o.ID != "" {
		wrong = &store.InvalidError{Field: "id", Problem: "one for many tasks"}
	}
	for i, p := range params {
		raw, err := encode("parameters", p)
		if err == nil {
			requests = append(requests, task.Request{Behavior: bound, Params: raw, SubmitOptions: o})
			of = append(of, i)
			continue
		}
		all[i] = Result[R]{failed[R]("", err), err}
		if wrong == nil && many.RequestKey != "" {
			wrong = fmt.Errorf("%w: request %d: %w", task.ErrNoneSubmitted, i, err)
		}
	}
	if wrong != nil {
		for i := range all {
			if all[i].Err == nil {
				all[i] = Result[R]{failed[R]("", wrong), wrong}
			}
		}
		return all
	}
	for i, r := range to.SubmitMany(ctx, requests, many) {
		all[of[i]] = Result[R]{futureOf[R](r.Future, r.Future), r.Err}
	}
	return all
}
