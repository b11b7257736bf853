package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"taskledger/api/operations"
	"taskledger/api/problem"
	"taskledger/api/token"
	"taskledger/api/view"

	"taskledger/events"
	"taskledger/task"
)

// Submit asks for a task.
type Submit struct {
	Behavior  string          `json:"behavior"`
	Params    json.RawMessage `json:"params,omitempty"`     // any JSON value
	ID        *events.TaskID  `json:"id,omitempty"`         // default: the behavior's rule, or drawn
	NotBefore *time.Time      `json:"not_before,omitempty"` // RFC 3339
	DelayMs   int64           `json:"delay_ms,omitempty"`   // instead of not_before
	Priority  int64           `json:"priority,omitempty"`
	// These override the policy of the behavior for this task; 0 = they do not.
	MaxAttempts int64 `json:"max_attempts,omitempty"`
	TimeoutMs   int64 `json:"timeout_ms,omitempty"` // of an attempt
	RetainMs    int64 `json:"retain_ms,omitempty"`  // after SUCCESS

	Tags     []string   `json:"tags,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"` // RFC 3339; the run fails unless it has ended by then
}

// Submitted is a task that was submitted, and its outcome where it has one.
type Submitted struct {
	view.Outcome
	Joined   bool `json:"joined,omitempty"`   // the task was there before
	Repeated bool `json:"repeated,omitempty"` // so was the request, by its key
}

// submissions serves the routes that submit tasks.
type submissions struct{ submitter operations.Submitter }

func (s submissions) submit(c *Call) error {
	wait, waits, err := c.Wait()
	if err != nil {
		return err
	}
	var ask Submit
	if err := c.Read(&ask); err != nil {
		return err
	}
	o, err := ask.options(c.by)
	if err != nil {
		return err
	}
	if o.RequestKey, err = c.Key(); err != nil {
		return err
	}
	if o.ID, err = idFor(c.by, o.ID, ask.Behavior, o.RequestKey); err != nil {
		return err
	}
	deadline, cancel := context.WithTimeout(c.ctx, answerWithin)
	defer cancel()
	h, err := s.submitter.SubmitRaw(deadline, ask.Behavior, ask.Params, o)
	if err != nil {
		return ofTask(hide(c.by, err), h)
	}
	c.dropBody()
	answer := Submitted{Joined: h.Joined(), Repeated: h.Repeated()}
	answer.ID = h.ID()
	c.w.Header().Set("Location", "/v1/tasks/"+pathOf(h.ID()))
	if waits && await(c, h, wait, &answer.Outcome) {
		return c.JSON(http.StatusOK, answer)
	}
	c.w.Header().Set("Retry-After", "1")
	return c.JSON(http.StatusAccepted, answer)
}

// options checks that the token may ask for the task, and returns the options of the submit.
func (s *Submit) options(by *token.Token) (o task.SubmitOptions, err error) {
	if err := checkBehavior(s.Behavior); err != nil {
		return o, err
	}
	if err := maySubmit(by, s.Behavior); err != nil {
		return o, err
	}
	if s.ID != nil && *s.ID == "" {
		return o, invalid("id", "it is empty: leave it out for the default")
	}
	if s.ID != nil {
		if err := checkID("id", *s.ID); err != nil {
			return o, err
		}
	}
	if s.DelayMs > 0 && s.NotBefore != nil {
		return o, invalid("delay_ms", "want it or not_before")
	}
	if s.NotBefore != nil && s.NotBefore.After(time.Now().Add(events.MaxDelay)) {
		return o, invalid("not_before", "%s: want ten years ahead at most", s.NotBefore.UTC().Format(time.RFC3339))
	}
	most := events.MaxDelay.Milliseconds()
	for _, given := range []task.LimitError{
		{Field: "delay_ms", Limit: most, Got: s.DelayMs},
		{Field: "max_attempts", Limit: events.MaxPolicyCount, Got: s.MaxAttempts},
		{Field: "timeout_ms", Limit: most, Got: s.TimeoutMs},
		{Field: "retain_ms", Limit: most, Got: s.RetainMs},
	} {
		if given.Got < 0 || given.Got > given.Limit {
			return o, &given
		}
	}
	if string(s.Params) == "null" {
		s.Params = nil
	}
	o = task.SubmitOptions{
		Priority:    s.Priority,
		Delay:       time.Duration(s.DelayMs) * time.Millisecond,
		MaxAttempts: int(s.MaxAttempts),
		Timeout:     time.Duration(s.TimeoutMs) * time.Millisecond,
		Retain:      time.Duration(s.RetainMs) * time.Millisecond,
		Tags:        s.Tags,
	}
	if s.ID != nil {
		o.ID = *s.ID
	}
	if s.NotBefore != nil {
		o.NotBefore = *s.NotBefore
	}
	if s.Deadline != nil {
		o.Deadline = *s.Deadline
	}
	return o, checkTags(s.Tags)
}

// checkTags refuses tags that no task has.
func checkTags(tags []string) error {
	if n := len(slices.Compact(slices.Sorted(slices.Values(tags)))); n > events.MaxTags {
		return &task.LimitError{Field: "tags", Limit: events.MaxTags, Got: int64(n)}
	}
	for _, tag := range tags {
		if err := events.ValidateTag(tag); err != nil {
			return invalid("tags", "%s", err)
		}
	}
	return nil
}

// idFor returns the id of a task that a token submits. It begins with the prefix of the token.
func idFor(by *token.Token, id events.TaskID, behavior, key string) (events.TaskID, error) {
	switch prefix := by.Prefix; {
	case prefix == "":
		return id, nil
	case id != "" && !by.MayTask(id):
		return "", problem.New(problem.Forbidden, "the token is for ids alone that begin with %s", prefix)
	case id != "":
		return id, nil
	case key != "":
		return events.TaskID(prefix) + events.TaskOfRequest(by.Name, behavior, key), nil
	default:
		return events.TaskID(prefix + strings.ToLower(rand.Text())), nil
	}
}

// ofTask adds to an unknown outcome the id of its task.
func ofTask(err error, h operations.Handle) error {
	if h == nil || h.ID() == "" || !errors.Is(err, task.ErrUnknown) {
		return err
	}
	p := problem.Of(err)
	p.Task = string(h.ID())
	return p
}

// hide removes the state of a task from an error if the token is for some behaviors: its task may be of another one.
func hide(by *token.Token, err error) error {
	_, is := errors.AsType[*task.StateError](err)
	if !is || len(by.Behaviors) == 0 || errors.Is(err, task.ErrOtherRequest) {
		return err
	}
	return problem.New(problem.State, "the id is taken, or the state of its task does not allow this")
}
