package command

import (
	"cmp"
	"slices"
	"time"

	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// NewSubmit makes the command of a request that its behavior has planned, at a time. A delay stays one: the owner
// adds it. It names the task if the request or the plan does, and still has to be checked.
func NewSubmit(
	now time.Time, behavior string, policy *events.Policy, plan *task.Plan, q *task.Request,
) (*Submit, error) {
	if overrides := q.Overrides(); overrides != (events.Overrides{}) {
		own := overrides.Of(*policy)
		policy = &own
	}
	if !policy.IsComplete() {
		complete, err := policy.Complete()
		if err != nil {
			return nil, &store.InvalidError{Field: "policy", Problem: err.Error()}
		}
		policy = &complete
	}
	if len(q.Params) > events.MaxPayloadBytes {
		return nil, &task.LimitError{Field: "parameters", Limit: events.MaxPayloadBytes, Got: int64(len(q.Params))}
	}
	notBefore, delay := plan.NotBefore, plan.Delay
	switch {
	case !q.NotBefore.IsZero():
		notBefore, delay = q.NotBefore, 0
	case q.Delay > 0:
		notBefore, delay = time.Time{}, q.Delay
	}
	if 0 < delay && delay <= events.MaxDelay { // a short delay is not none
		delay = (delay + time.Millisecond - 1).Truncate(time.Millisecond)
	}
	if notBefore.Sub(now) > events.MaxDelay {
		problem := notBefore.UTC().Format(time.RFC3339) + ": want ten years ahead at most"
		return nil, &store.InvalidError{Field: "not before", Problem: problem}
	}
	c := &Submit{
		Task:      cmp.Or(q.ID, plan.ID),
		Behavior:  behavior,
		Policy:    *policy,
		Priority:  cmp.Or(q.Priority, plan.Priority, policy.Priority),
		NotBefore: max(events.MillisOf(notBefore), 0),
		Delay:     delay,
		Params:    events.JSON(q.Params),
		RunNow:    plan.RunNow,
		Tags:      slices.Compact(slices.Sorted(slices.Values(q.Tags))),
		Deadline:  max(events.MillisOf(q.Deadline), 0),
	}
	if q.Deadline.Sub(now) > events.MaxDelay {
		problem := q.Deadline.UTC().Format(time.RFC3339) + ": want ten years ahead at most"
		return nil, &store.InvalidError{Field: "deadline", Problem: problem}
	}
	if n := len(c.Tags); n > events.MaxTags {
		return nil, &task.LimitError{Field: "tags", Limit: events.MaxTags, Got: int64(n)}
	}
	if n := int64(len(c.Task)); plan.IDLimit != 0 && n > plan.IDLimit {
		return nil, &task.LimitError{Field: "id", Limit: plan.IDLimit, Got: n}
	}
	if q.RequestKey != "" {
		asked := c.Asked(q)
		c.RequestID = asked.ID(q.RequestKey)
	}
	return c, nil
}

// Asked returns the request that the command was made of, as its events record it.
func (c *Submit) Asked(q *task.Request) events.Request {
	return events.Request{
		Behavior:  c.Behavior,
		Params:    c.Params,
		NotBefore: events.MillisOf(q.NotBefore),
		Delay:     q.Delay,
		Priority:  q.Priority,
		Overrides: q.Overrides(),
		Tags:      c.Tags,
		Deadline:  c.Deadline,
	}
}
