package remote

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"taskledger/api"
	"taskledger/api/operations"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// maxRequests bounds the requests of one SubmitMany, as that of the engine does.
const maxRequests = 1000

// maxBody bounds the body of a request, as package api does.
const maxBody = 4 << 20

// SubmitMany implements operations.Submitter. Requests that are more than a body takes are sent in parts, one after the
// other, but those of one key, which are refused before anything is sent. With AllValid nothing follows a part of which
// nothing is submitted; the parts before it are.
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
	sizes, err := parts(requests)
	if err != nil {
		return allFailed(requests, err)
	}
	if len(sizes) > 1 && o.RequestKey != "" {
		err := &task.LimitError{Field: "requests of one key", Limit: maxBody, Got: int64(sizes.bytes())}
		return allFailed(requests, err)
	}
	all := make([]operations.Submitted, 0, len(requests))
	for _, part := range sizes {
		var made []operations.Submitted
		made, err = s.submitPart(ctx, requests[len(all):][:part.requests], o)
		all = append(all, made...)
		if err != nil {
			break
		}
	}
	return append(all, allFailed(requests[len(all):], err)...)
}

// part is a number of requests that travel in one body.
type part struct{ requests, bytes int }

type partition []part

func (p partition) bytes() (n int) {
	for _, one := range p {
		n += one.bytes
	}
	return n
}

// parts divides requests into as few bodies as take them, in their order.
func parts(requests []task.Request) (all partition, err error) {
	const around = len(`{"tasks":[],"all_valid":true}`)
	for i := range requests {
		one, err := encodeOne(i, &requests[i])
		if err != nil {
			return nil, err
		}
		size := len(one) + len(",")
		if last := len(all) - 1; last >= 0 && all[last].bytes+size <= maxBody {
			all[last].requests++
			all[last].bytes += size
			continue
		}
		all = append(all, part{1, around + size})
	}
	return all, nil
}

// submitPart submits requests that travel together. An error says why nothing more may be sent after them.
func (s submitter) submitPart(
	ctx context.Context, requests []task.Request, o task.ManyOptions,
) (all []operations.Submitted, stop error) {
	told, err := s.submitTogether(ctx, requests, o)
	if err != nil {
		return allFailed(requests, err), fmt.Errorf("not sent: %w, after: %v", store.ErrUnavailable, err)
	}
	all = make([]operations.Submitted, len(requests))
	none := o.AllValid
	for i, item := range told {
		if item.Problem == nil {
			none = false
			all[i].Handle = s.submitted(item.ID, item.Joined, item.Repeated)
			continue
		}
		err := item.Problem.Err()
		if !strings.HasPrefix(err.Error(), "submit") { // as the node may have said already
			err = fmt.Errorf("submit: %w", err)
		}
		all[i] = failed(idOf(item.ID, &requests[i]), err)
	}
	if none {
		stop = fmt.Errorf("submit: %w", task.ErrNoneSubmitted)
	}
	return all, stop
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

func encodeOne(i int, r *task.Request) ([]byte, error) {
	one, err := withParams(submitBody(nameOf(r), r.SubmitOptions), r.Params)
	if err != nil {
		return nil, fmt.Errorf("request %d: %w", i, err)
	}
	return one, nil
}

func batchBody(requests []task.Request, allValid bool) ([]byte, error) {
	body := []byte(`{"tasks":[`)
	for i := range requests {
		one, err := encodeOne(i, &requests[i])
		if err != nil {
			return nil, err
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
