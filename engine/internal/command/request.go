package command

import (
	"cmp"
	"fmt"
	"time"

	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// maxDelay is how far in the future a task may be scheduled: 10 years.
const maxDelay = 10 * 365 * 24 * time.Hour

// NewSubmit makes the command of a request that its behavior has planned, at a time. It names the task if the request or the plan does,
// and still has to be checked.
func NewSubmit(now time.Time, behavior string, policy *events.Policy, plan *task.Plan, q *task.Request) (*Submit, error) {
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
	notBefore := plan.NotBefore
	switch {
	case !q.NotBefore.IsZero():
		notBefore = q.NotBefore
	case q.Delay > 0:
		notBefore = now.Add(q.Delay)
	}
	if d := notBefore.Sub(now); d > maxDelay {
		return nil, &store.InvalidError{Field: "not before", Problem: fmt.Sprintf("%s ahead, want at most %s", d, maxDelay)}
	}
	c := &Submit{Behavior: behavior, Policy: *policy, NotBefore: max(events.MillisOf(notBefore), 0), Params: events.JSON(q.Params),
		Task: cmp.Or(q.ID, plan.ID), RunNow: plan.RunNow, Priority: cmp.Or(q.Priority, plan.Priority, policy.Priority)}
	if q.RequestKey != "" {
		asked := c.Asked(q)
		c.RequestID = asked.ID(q.RequestKey)
	}
	return c, nil
}

// Asked is what a request asks for that the command was made of.
func (c *Submit) Asked(q *task.Request) events.Request {
	return events.Request{Behavior: c.Behavior, Params: c.Params, NotBefore: events.MillisOf(q.NotBefore), Delay: q.Delay, Priority: q.Priority}
}
