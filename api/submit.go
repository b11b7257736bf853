package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/shape"
	"taskledger/api/view"
	"taskledger/engine"
	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// maxRequests is how many tasks a batch submits.
const maxRequests = 1000

// Submit asks for a task.
type Submit struct {
	Behavior  string          `json:"behavior"`
	Params    json.RawMessage `json:"params,omitempty"`     // any JSON value
	ID        *events.TaskID  `json:"id,omitempty"`         // default: the behavior's rule, or drawn
	NotBefore *time.Time      `json:"not_before,omitempty"` // RFC 3339
	DelayMs   int64           `json:"delay_ms,omitempty"`   // instead of not_before
	Priority  int64           `json:"priority,omitempty"`
}

// Submitted is a task that was submitted, and its outcome where it has one.
type Submitted struct {
	view.Outcome
	Joined   bool `json:"joined,omitempty"`   // the task was there before
	Repeated bool `json:"repeated,omitempty"` // so was the request, by its key
}

// Batch asks for many tasks.
type Batch struct {
	Tasks []Submit `json:"tasks"` // 1 to 1,000
}

// UnmarshalJSON takes no more tasks than there may be: each takes many times the memory of its text.
func (b *Batch) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return &store.InvalidError{Field: "body", Problem: "want an object"}
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if name != "tasks" || b.Tasks != nil {
			return &store.InvalidError{Field: shape.Clip(fmt.Sprint(name)), Problem: "want the field tasks, once, and no other"}
		}
		if err := b.readTasks(d); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) readTasks(d *json.Decoder) error {
	if open, err := d.Token(); err != nil || open != json.Delim('[') {
		return &store.InvalidError{Field: "tasks", Problem: "want an array"}
	}
	b.Tasks = []Submit{}
	for d.More() {
		if len(b.Tasks) == maxRequests {
			return &store.InvalidError{Field: "tasks", Problem: fmt.Sprintf("more than %d tasks: want 1 to %d", maxRequests, maxRequests)}
		}
		var one Submit
		if err := d.Decode(&one); err != nil {
			return &store.InvalidError{Field: "tasks", Problem: fmt.Sprintf("task %d: %s", len(b.Tasks), strings.TrimPrefix(err.Error(), "json: "))}
		}
		b.Tasks = append(b.Tasks, one)
	}
	_, err := d.Token()
	return err
}

// BatchAnswer is what became of each, in order.
type BatchAnswer struct {
	Tasks []BatchItem `json:"tasks"`
}

// BatchItem is what became of one task: it has an id, or a problem, or both where the outcome is unknown.
type BatchItem struct {
	ID       events.TaskID    `json:"id,omitempty"`
	Joined   bool             `json:"joined,omitempty"`
	Repeated bool             `json:"repeated,omitempty"`
	Problem  *problem.Problem `json:"problem,omitempty"`
}

const keyHeader = "Idempotency-Key"

// Key is the key of the request, "" for none. An empty key is an error: its sender would believe that repetitions are recognized.
func (c *Call) Key() (string, error) {
	switch all := c.r.Header.Values(keyHeader); {
	case len(all) == 0:
		return "", nil
	case len(all) > 1:
		return "", &store.InvalidError{Field: keyHeader, Problem: "it is there more than once"}
	case all[0] == "":
		return "", &store.InvalidError{Field: keyHeader, Problem: "it is empty: leave it out for a request without a key"}
	default:
		return all[0], nil
	}
}

const (
	ageHeader    = "Idempotency-Age"
	withinHeader = "Idempotency-Within"
)

// Age is how long ago the request was sent first, 0 for one that is no repetition.
func (c *Call) Age() (time.Duration, error) {
	all := c.r.Header.Values(ageHeader)
	if len(all) == 0 {
		return 0, nil
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	n, err := strconv.ParseInt(all[0], 10, 64)
	if len(all) > 1 || err != nil || n < 0 || n > most {
		return 0, &store.InvalidError{Field: ageHeader, Problem: fmt.Sprintf("%.64q: want one number of 0 to %d, in milliseconds", all, most)}
	}
	return time.Duration(n) * time.Millisecond, nil
}

// Within returns the count of the header Idempotency-Within: at most so many requests of the client were carried out
// since the repeated one was first sent. It returns 0 where nobody has counted.
func (c *Call) Within() (int, error) {
	all := c.r.Header.Values(withinHeader)
	if len(all) == 0 {
		return 0, nil
	}
	n, err := strconv.ParseInt(all[0], 10, 32)
	if len(all) > 1 || err != nil || n < 0 {
		return 0, &store.InvalidError{Field: withinHeader, Problem: fmt.Sprintf("%.64q: want one number of 0 to %d", all, math.MaxInt32)}
	}
	return int(n), nil
}

func (c *Call) submit() error {
	wait, waits, err := c.wait()
	if err != nil {
		return err
	}
	var s Submit
	if err := c.Read(&s); err != nil {
		return err
	}
	o, err := c.options(&s)
	if err != nil {
		return err
	}
	if o.RequestKey, err = c.Key(); err != nil {
		return err
	}
	if o.ID, err = c.named(o.ID, s.Behavior, o.RequestKey); err != nil {
		return err
	}
	deadline, cancel := context.WithTimeout(c.ctx, answerWithin)
	defer cancel()
	h, err := c.api.submitter.SubmitRaw(deadline, s.Behavior, s.Params, o)
	if err != nil {
		return ofTask(c.hide(err), h)
	}
	c.dropBody()
	answer := Submitted{Joined: h.Joined(), Repeated: h.Repeated()}
	answer.ID = h.ID()
	c.w.Header().Set("Location", "/v1/tasks/"+inPath(h.ID()))
	if waits && c.await(h, wait, &answer.Outcome) {
		return c.JSON(http.StatusOK, answer)
	}
	c.w.Header().Set("Retry-After", "1")
	return c.JSON(http.StatusAccepted, answer)
}

// options checks what the token may ask for, and makes options of it.
func (c *Call) options(s *Submit) (o engine.SubmitOptions, err error) {
	if err := events.ValidateBehavior(s.Behavior); err != nil {
		return o, &store.InvalidError{Field: "behavior", Problem: err.Error()}
	}
	if !c.by.MayBehavior(s.Behavior) {
		return o, problem.New(problem.Forbidden, "the token is not for the behavior %s", s.Behavior)
	}
	if !c.by.MaySubmit(s.Behavior) {
		return o, problem.New(problem.Forbidden, "the behavior %s runs programs: it needs role operator, or a token that names it (token new --behavior %[1]s)", s.Behavior)
	}
	if s.ID != nil && *s.ID == "" {
		return o, &store.InvalidError{Field: "id", Problem: "it is empty: leave it out for the default"}
	}
	if s.DelayMs < 0 || s.DelayMs > int64(maxDelay/time.Millisecond) {
		return o, &store.InvalidError{Field: "delay_ms", Problem: fmt.Sprintf("%d: want 0 to %d", s.DelayMs, int64(maxDelay/time.Millisecond))}
	}
	if s.DelayMs > 0 && s.NotBefore != nil {
		return o, &store.InvalidError{Field: "delay_ms", Problem: "want it or not_before"}
	}
	if s.NotBefore != nil && s.NotBefore.After(time.Now().Add(maxDelay)) {
		return o, &store.InvalidError{Field: "not_before", Problem: s.NotBefore.UTC().Format(time.RFC3339) + ": want ten years ahead at most"}
	}
	if string(s.Params) == "null" {
		s.Params = nil
	}
	o = engine.SubmitOptions{Priority: s.Priority, Delay: time.Duration(s.DelayMs) * time.Millisecond}
	if s.ID != nil {
		o.ID = *s.ID
	}
	if s.NotBefore != nil {
		o.NotBefore = *s.NotBefore
	}
	return o, nil
}

// maxDelay is how far ahead a task may be scheduled: ten years.
const maxDelay = 10 * 365 * 24 * time.Hour

// named returns the id of a task that a limited token submits: it begins with the token's prefix.
func (c *Call) named(id events.TaskID, behavior, key string) (events.TaskID, error) {
	switch prefix := c.by.Prefix; {
	case prefix == "":
		return id, nil
	case id != "" && !c.by.MayTask(id):
		return "", problem.New(problem.Forbidden, "the token is for ids alone that begin with %s", prefix)
	case id != "":
		return id, nil
	case key != "":
		return events.TaskID(prefix) + events.TaskOfRequest(c.by.Name, behavior, key), nil
	default:
		return events.TaskID(prefix + strings.ToLower(rand.Text())), nil
	}
}

// await waits for an outcome, closes the handle, and reports whether there is one. Whatever else ends the wait is no
// failure of the request: the task is there.
func (c *Call) await(h operations.Handle, wait time.Duration, into *view.Outcome) bool {
	defer h.Close()
	ctx, cancel := c.patient(wait)
	defer cancel()
	result, err := h.Wait(ctx)
	failed, is := errors.AsType[*engine.TaskError](err)
	if err != nil && !is {
		return false
	}
	*into = view.OfOutcome(h.ID(), result, failed)
	return true
}

// ofTask tells of an unknown outcome which task it is of.
func ofTask(err error, h operations.Handle) error {
	if h == nil || h.ID() == "" || !errors.Is(err, task.ErrUnknown) {
		return err
	}
	p := problem.Of(err)
	p.Task = string(h.ID())
	return p
}

// hide keeps what a token that is for some behaviors must not know of a task whose id it has met.
func (c *Call) hide(err error) error {
	if _, is := errors.AsType[*task.StateError](err); !is || len(c.by.Behaviors) == 0 || errors.Is(err, task.ErrOtherRequest) {
		return err
	}
	return problem.New(problem.State, "the id is taken, or the state of its task does not allow this")
}

// inPath is an id as a segment of a path.
func inPath(id events.TaskID) string { return strings.Replace(string(id), "/", "~", 1) }

// idOf is the id that a text of a URL means.
func idOf(text string) events.TaskID { return events.TaskID(strings.Replace(text, "~", "/", 1)) }

func (c *Call) submitMany() error {
	var b Batch
	if err := c.Read(&b); err != nil {
		return err
	}
	if n := len(b.Tasks); n == 0 || n > maxRequests {
		return &store.InvalidError{Field: "tasks", Problem: fmt.Sprintf("%d tasks: want 1 to %d", n, maxRequests)}
	}
	key, err := c.Key()
	if err != nil {
		return err
	}
	if key != "" && c.by.Prefix != "" {
		for i := range b.Tasks {
			if b.Tasks[i].ID == nil {
				return &store.InvalidError{Field: keyHeader, Problem: fmt.Sprintf("the token has a prefix: task %d needs an id", i)}
			}
		}
	}
	answer := BatchAnswer{make([]BatchItem, len(b.Tasks))}
	var requests []task.Request
	var at []int // of each, in the batch
	for i := range b.Tasks {
		o, err := c.options(&b.Tasks[i])
		if err == nil {
			o.ID, err = c.named(o.ID, b.Tasks[i].Behavior, "")
		}
		if err != nil && key == "" {
			answer.Tasks[i].Problem = problem.Of(err)
			continue
		}
		if err != nil { // a key is of all of them
			p := problem.Of(err)
			p.Detail = fmt.Sprintf("task %d: %s", i, p.Detail)
			return p
		}
		requests = append(requests, task.Request{Name: b.Tasks[i].Behavior, Params: b.Tasks[i].Params, SubmitOptions: o})
		at = append(at, i)
	}
	for i, r := range c.api.submitter.SubmitMany(c.ctx, requests, task.ManyOptions{RequestKey: key}) {
		item := &answer.Tasks[at[i]]
		if r.Handle != nil {
			item.ID = r.ID()
		}
		if r.Err != nil {
			item.Problem = problem.Of(c.hide(r.Err))
			if !errors.Is(r.Err, task.ErrUnknown) {
				item.ID = ""
			}
			continue
		}
		item.Joined, item.Repeated = r.Joined(), r.Repeated()
	}
	if p := answer.Tasks[0].Problem; key != "" && p != nil && p.Type == problem.KeyReused { // it is of all of them
		return p
	}
	return c.JSON(http.StatusOK, answer)
}
