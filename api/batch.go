package api

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskledger/api/problem"
	"taskledger/events"
	"taskledger/task"
)

// maxRequests bounds the tasks of a batch.
const maxRequests = 1000

// Batch asks for many tasks.
type Batch struct {
	Tasks batched `json:"tasks"` // 1 to 1,000
	// AllValid submits none where one breaks a rule or its behavior is unknown, as a key does.
	AllValid bool `json:"all_valid,omitempty"`
}

// batched holds the tasks of a batch.
type batched []Submit

// UnmarshalJSONFrom takes no more tasks than there may be: each takes many times the memory of its text.
func (b *batched) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != '[' {
		return cmp.Or(d.SkipValue(), invalid("tasks", "want an array"))
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		if len(*b) == maxRequests {
			return problem.Of(invalid("tasks", "more than %d tasks: want 1 to %d", maxRequests, maxRequests))
		}
		var one Submit
		if err := json.UnmarshalDecode(d, &one); err != nil {
			return err
		}
		*b = append(*b, one)
	}
	_, err := d.ReadToken()
	return err
}

// BatchAnswer holds the result of each task of a batch, in order.
type BatchAnswer struct {
	Tasks []BatchItem `json:"tasks"`
}

// BatchItem holds the result of one task: an id, or a problem, or both where the outcome is unknown.
type BatchItem struct {
	ID       events.TaskID    `json:"id,omitempty"`
	Joined   bool             `json:"joined,omitempty"`
	Repeated bool             `json:"repeated,omitempty"`
	Problem  *problem.Problem `json:"problem,omitempty"`
}

// without tells of the requests that nothing is wrong with that they are not submitted for another one's sake.
func (a BatchAnswer) without(requests []task.Request, at []int) BatchAnswer {
	for i := range requests {
		a.Tasks[at[i]].Problem = problem.Of(task.ErrNoneSubmitted)
	}
	return a
}

func (s submissions) submitMany(c *Call) error {
	var b Batch
	if err := c.Read(&b); err != nil {
		return err
	}
	if n := len(b.Tasks); n == 0 || n > maxRequests {
		return invalid("tasks", "%d tasks: want 1 to %d", n, maxRequests)
	}
	key, err := c.Key()
	if err != nil {
		return err
	}
	if key != "" && c.by.Prefix != "" {
		for i := range b.Tasks {
			if b.Tasks[i].ID == nil {
				return invalid(keyHeader, "the token has a prefix: task %d needs an id", i)
			}
		}
	}
	answer := BatchAnswer{make([]BatchItem, len(b.Tasks))}
	var requests []task.Request
	var at []int // of each, in the batch
	for i := range b.Tasks {
		o, err := b.Tasks[i].options(c.by)
		if err == nil {
			o.ID, err = idFor(c.by, o.ID, b.Tasks[i].Behavior, "")
		}
		if err != nil && key == "" {
			answer.Tasks[i].Problem = problem.Of(err)
			continue
		}
		if err != nil { // a key covers all of them
			p := problem.Of(err)
			p.Detail = fmt.Sprintf("task %d: %s", i, p.Detail)
			return p
		}
		requests = append(requests, task.Request{
			Name: b.Tasks[i].Behavior, Params: b.Tasks[i].Params, SubmitOptions: o,
		})
		at = append(at, i)
	}
	if b.AllValid && len(requests) < len(b.Tasks) {
		return c.JSON(http.StatusOK, answer.without(requests, at))
	}
	o := task.ManyOptions{RequestKey: key, AllValid: b.AllValid}
	for i, r := range s.submitter.SubmitMany(c.ctx, requests, o) {
		item := &answer.Tasks[at[i]]
		if r.Handle != nil {
			item.ID = r.ID()
		}
		if r.Err != nil {
			item.Problem = problem.Of(hide(c.by, r.Err))
			if !errors.Is(r.Err, task.ErrUnknown) {
				item.ID = ""
			}
			continue
		}
		item.Joined, item.Repeated = r.Joined(), r.Repeated()
	}
	if p := answer.Tasks[0].Problem; key != "" && p != nil && p.Type == problem.KeyReused { // a key covers all of them
		return p
	}
	return c.JSON(http.StatusOK, answer)
}
