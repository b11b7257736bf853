package remote

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/events"
	"taskledger/task"
)

// maxRequests bounds the requests of one SubmitMany, as that of the engine does.
const maxRequests = 1000

// SubmitMany implements operations.Submitter.
func (s submitter) SubmitMany(
	ctx context.Context, requests []task.Request, o task.ManyOptions,
) []operations.Submitted {
	if len(requests) == 0 {
		return nil
	}
	ownKey := func(r task.Request) bool { return r.RequestKey != "" }
	if n := len(requests); n > maxRequests {
		return allFailed(requests, &task.LimitError{Field: "requests", Limit: maxRequests, Got: int64(n)})
	}
	if slices.ContainsFunc(requests, ownKey) { // a header has one key
		return s.submitEach(ctx, requests, o)
	}
	told, err := s.submitTogether(ctx, requests, o)
	if err != nil {
		return allFailed(requests, err)
	}
	all := make([]operations.Submitted, len(requests))
	for i, item := range told {
		if item.Problem == nil {
			all[i].Handle = s.submitted(item.ID, item.Joined, item.Repeated)
			continue
		}
		err := fmt.Errorf("submit: %w", item.Problem.Err())
		all[i] = failed(idOf(item.ID, &requests[i]), err)
	}
	return all
}

func idOf(told events.TaskID, asked *task.Request) events.TaskID {
	if told != "" {
		return told
	}
	return asked.ID
}

// failed returns the result of a request that is refused, or of which it is not known what became.
func failed(id events.TaskID, err error) operations.Submitted {
	return operations.Submitted{Handle: &handle{id: id, failed: err}, Err: err}
}

func allFailed(requests []task.Request, err error) []operations.Submitted {
	all := make([]operations.Submitted, len(requests))
	for i := range requests {
		all[i] = failed(requests[i].ID, err)
	}
	return all
}

// submitEach sends requests one after the other.
func (s submitter) submitEach(
	ctx context.Context, requests []task.Request, o task.ManyOptions,
) []operations.Submitted {
	if o.AllValid || o.RequestKey != "" {
		const instead = "all or none of requests under keys of their own"
		err := fmt.Errorf("submit many: %w: %s: submit each alone, or all under one key", ErrNoRoute, instead)
		return allFailed(requests, err)
	}
	all := make([]operations.Submitted, len(requests))
	for i := range requests {
		r := &requests[i]
		all[i].Handle, all[i].Err = s.SubmitRaw(ctx, nameOf(r), r.Params, r.SubmitOptions)
	}
	return all
}

// submitTogether sends requests in one.
func (s submitter) submitTogether(
	ctx context.Context, requests []task.Request, o task.ManyOptions,
) ([]api.BatchItem, error) {
	header, err := keyed(o.RequestKey)
	if err != nil {
		return nil, err
	}
	body, err := batchBody(requests, o.AllValid)
	if err != nil {
		return nil, err
	}
	var told api.BatchAnswer
	_, err = s.ask(ctx, request{
		does:   "submit many",
		method: http.MethodPost,
		path:   "/v1/tasks:batch",
		header: header,
		body:   body,
	}, &told)
	if err == nil && len(told.Tasks) != len(requests) {
		err = fmt.Errorf("submit many: %w: %d results, want %d", task.ErrUnknown, len(told.Tasks), len(requests))
	}
	return told.Tasks, err
}

func nameOf(r *task.Request) string {
	if r.Behavior != nil {
		return r.Behavior.ID()
	}
	return r.Name
}

func batchBody(requests []task.Request, allValid bool) ([]byte, error) {
	body := []byte(`{"tasks":[`)
	for i := range requests {
		r := &requests[i]
		one, err := withParams(submitBody(nameOf(r), r.SubmitOptions), r.Params)
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", i, err)
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, one...)
	}
	if allValid {
		return append(body, `],"all_valid":true}`...), nil
	}
	return append(body, "]}"...), nil
}
