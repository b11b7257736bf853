package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/bulk"
	"taskledger/events"
	"taskledger/schedule"
	"taskledger/store"
	"taskledger/task"
)

// bucketsWithin is the time for which the API waits for the open buckets of a work that is suspended.
const bucketsWithin = 10 * time.Second

// operator implements operations.Operator.
type operator struct{ *link }

// Operate implements operations.Operator.
func (o operator) Operate(
	ctx context.Context, verb operations.Verb, on, reason string,
) (anew bool, err error) {
	return o.operate(ctx, verb, on, reason, events.Position{})
}

// OperateSeen implements operations.Operator.
func (o operator) OperateSeen(
	ctx context.Context, verb operations.Verb, seen *task.Task, reason string,
) (anew bool, err error) {
	if verb == operations.Pause || verb == operations.Unpause {
		return false, fmt.Errorf("%s: it is no verb of a task", verb)
	}
	return o.operate(ctx, verb, string(seen.ID), reason, seen.Version)
}

// operate sends a change; of a task that must have a version, unless that is zero.
func (o operator) operate(
	ctx context.Context, verb operations.Verb, on, reason string, seen events.Position,
) (anew bool, err error) {
	q := request{does: string(verb), method: http.MethodPost}
	switch verb {
	case operations.Pause, operations.Unpause:
		q.path, err = pathOfBehavior(on, verb)
	case operations.Delete:
		q.method = http.MethodDelete
		q.path, err = pathOf(events.TaskID(on), "")
	case operations.Cancel, operations.Suspend, operations.Resume, operations.Retry, operations.RunNow:
		q.path, err = pathOf(events.TaskID(on), "/"+string(verb))
	default:
		err = errors.New("the verb is unknown")
	}
	switch {
	case err != nil:
	case verb == operations.Pause: // the engine pauses a behavior, too, that no node runs
		q.body, err = encode(api.PauseRequest{Reason: api.Reason{Reason: reason}, Force: true})
	case reason != "" && (verb == operations.Cancel || verb == operations.Suspend):
		q.body, err = encode(api.Reason{Reason: reason})
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", verb, err)
	}
	if verb == operations.Suspend {
		q.wait = bucketsWithin
	}
	if seen != (events.Position{}) {
		q.header = http.Header{"If-Match": {strconv.Quote(seen.String())}}
	}
	var told api.ChangedTask
	_, err = o.ask(ctx, q, &told)
	if errors.Is(err, schedule.ErrChanged) {
		err = &task.StateError{Task: events.TaskID(on), Problem: "it has changed since it was seen", Changed: true}
	}
	if verb == operations.Unpause && errors.Is(err, task.ErrUnknownBehavior) {
		return false, nil // it is not paused, which the engine does not mind
	}
	return told.NewLife, err
}

func pathOfBehavior(name string, verb operations.Verb) (string, error) {
	if err := events.ValidateBehavior(name); err != nil {
		return "", &store.InvalidError{Field: "behavior", Problem: err.Error()}
	}
	return "/v1/behaviors/" + url.PathEscape(name) + "/" + string(verb), nil
}

// Each implements operations.Operator.
func (o operator) Each(
	ctx context.Context, f task.Filter, op task.Operation, with bulk.Options,
) iter.Seq2[bulk.Report, error] {
	return func(yield func(bulk.Report, error) bool) {
		verb, err := verbOf(op)
		ask := api.ChangeMatching{
			Operation: verb,
			Filter:    fieldsOf(f),
			DryRun:    with.DryRun,
			Cursor:    with.Cursor,
			Reason:    with.Reason,
		}
		var body []byte
		if err == nil {
			body, err = encode(ask)
		}
		if err != nil {
			yield(bulk.Report{}, err)
			return
		}
		q := request{
			does:   string(verb) + " what matches",
			method: http.MethodPost,
			path:   "/v1/tasks:change-matching",
			body:   body,
		}
		last, done := bulk.Report{Cursor: with.Cursor}, false
		for line, err := range lines[api.ChangeReport](ctx, o.link, q) {
			if err != nil {
				yield(last, err)
				return
			}
			last, err = reportOf(&line)
			done = line.Done || err != nil
			if !yield(last, err) {
				return
			}
		}
		if !done { // the node ends, and others may be there
			const broken = "the answer ends before the work is done: go on with the cursor"
			yield(last, fmt.Errorf("%s: %w", q.does, unavailable(errors.New(broken))))
		}
	}
}

func verbOf(op task.Operation) (operations.Verb, error) {
	for verb, is := range operations.OfMany {
		if is == op {
			return verb, nil
		}
	}
	return "", &store.InvalidError{Field: "operation", Problem: fmt.Sprintf("there is no operation %d", op)}
}

// reportOf returns the report of a line, and why it is the last one although something is left.
func reportOf(line *api.ChangeReport) (r bulk.Report, err error) {
	r = line.Report
	r.Rows, r.Missing = line.Counts, missing(line.Missing)
	for _, p := range line.Problems {
		r.Problems = append(r.Problems, p.Err())
	}
	if line.Problem != nil {
		err = cmp.Or(line.Problem.Err(), error(line.Problem))
	}
	return r, err
}
