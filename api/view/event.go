// Package view gives the answers of a cluster their JSON, the same wherever it is shown. Times are in UTC.
package view

import (
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/store"
	"taskledger/task"
)

// Event is an event as JSON shows it.
type Event struct {
	Position  events.Position `json:"position"`
	At        events.Millis   `json:"at"`
	Task      events.TaskID   `json:"task,omitempty"`
	Record    string          `json:"record,omitempty"` // that the event is of; "" = a task
	Seq       uint64          `json:"seq"`
	Kind      events.Kind     `json:"kind"`
	Behavior  string          `json:"behavior,omitempty"` // of the task
	Node      string          `json:"node,omitempty"`     // name of the node whose attempt it is about
	Session   string          `json:"session,omitempty"`  // of that node
	Principal string          `json:"principal,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	Data      any             `json:"data,omitempty"`
	Caller    *Caller         `json:"caller,omitempty"`
}

// Caller identifies the request that caused an event, besides its principal.
type Caller struct {
	RequestID   string `json:"request_id,omitempty"`
	Traceparent string `json:"traceparent,omitempty"`
}

// OfEvent shows an event.
func OfEvent(e ledger.Event) Event {
	v := Event{
		Position:  e.Position,
		At:        e.At,
		Task:      e.Task,
		Record:    recordOf(&e),
		Seq:       e.Seq,
		Kind:      e.Kind(),
		Behavior:  e.Behavior,
		Node:      store.NodeName(e.Node),
		Session:   e.Node,
		Principal: e.Caller.Principal,
		RequestID: e.RequestID,
		Data:      body(e.Body),
	}
	if caller := (Caller{e.Caller.RequestID, e.Caller.Traceparent}); caller != (Caller{}) {
		v.Caller = &caller
	}
	return v
}

// recordOf names the record of an event, if that is no task.
func recordOf(e *ledger.Event) string {
	if of := e.Kind().Record(); of != events.OfTask {
		return of.String()
	}
	return ""
}

type object = map[string]any

// body returns the content of an event beyond its kind, nil for none.
func body(of events.Body) any {
	switch b := of.(type) {
	case *events.Created:
		return withTies(object{
			"priority":   b.Priority,
			"not_before": b.NotBefore,
			"params":     b.Params.Readable(),
			"policy":     policy(b.Policy),
		}, b.Ties)
	case *events.Started:
		return object{"attempt": b.Attempt, "offer": b.Offer, "lease_ms": int64(b.Lease)}
	case *events.Progressed:
		return task.Progress{Done: b.Done, Total: b.Total, Note: b.Note}
	case *events.Succeeded:
		return withNext(object{"result": b.Result.Readable(), "run": b.Run}, b.Next)
	case *events.Failed:
		return withNext(object{"error": b.Error, "run": b.Run}, b.Next)
	case *events.Snoozed:
		return object{"until": b.Until}
	case *events.Lost:
		return object{"until": b.Until}
	case *events.Released:
		return object{"until": b.Until}
	case *events.Rescheduled:
		o := withTerms(withNext(object{}, b.At), b.Terms)
		if b.Reason != "" {
			o["reason"] = b.Reason
		}
		return o
	case *events.Merged:
		return withTerms(object{"params": b.Params.Readable()}, b.Terms)
	case *events.Joined:
		return withTerms(object{}, b.Terms)
	case *events.AcceptedLoss:
		return object{"entry": b.Entry, "sound": b.Sound, "reason": b.Reason}
	case *events.Recovered:
		return object{"entry": b.Entry, "sound": b.Sound, "reason": b.Reason}
	case *events.Paused:
		return object{"behavior": b.Behavior, "reason": b.Reason}
	case *events.Unpaused:
		return object{"behavior": b.Behavior}
	case *events.Suspended:
		return object{"reason": b.Reason}
	case *events.Described:
		return described(b)
	case *events.CancelRequested:
		return object{"reason": b.Reason}
	case *events.ItemAdded:
		return object{
			"id":        b.ID,
			"group":     b.Group,
			"available": b.At,
			"owner":     b.Owner,
			"data":      text(b.Data),
		}
	case *events.ItemReplaced:
		return withText(object{
			"from":      b.From,
			"to":        b.To,
			"available": b.At,
			"owner":     b.Owner,
		}, b.Data)
	case *events.ItemRemoved:
		return object{"id": b.ID, "owner": b.Owner}
	case *events.StoreForgotten:
		return object{"store": b.Store, "last": b.Last}
	}
	if o := ofWork(of); o != nil {
		return o
	}
	return ofSchedule(of)
}

func described(b *events.Described) object {
	o := object{}
	if len(b.Tags) > 0 {
		o["tags"] = b.Tags
	}
	if b.Deadline != 0 {
		o["deadline"] = b.Deadline
	}
	return o
}

// withText adds the data of an item where an event changes them.
func withText(o object, data events.Payload) object {
	if data != nil {
		o["data"] = text(data)
	}
	return o
}

func withNext(o object, next events.Millis) object {
	if next != 0 {
		o["next"] = next
	}
	return o
}

func withTerms(o object, t *events.Terms) object {
	if t != nil {
		o["policy"], o["priority"] = policy(t.Policy), t.Priority
	}
	return o
}

func withTies(o object, t events.Ties) object {
	return withSome(o, map[string]string{
		"parent":   string(t.Parent),
		"schedule": t.Schedule,
		"group":    t.Group,
		"by":       t.By,
		"run":      runOrigins[t.Run],
	})
}

func policy(p events.Policy) object {
	existing := "return-recorded"
	if p.Existing == events.RunAgain {
		existing = "run-again"
	}
	return object{
		"timeout":      p.Timeout.String(),
		"max_attempts": p.MaxAttempts,
		"max_lost":     p.MaxLost,
		"lost_delay":   p.LostDelay.String(),
		"backoff_base": p.Backoff.Base.String(),
		"backoff_max":  p.Backoff.Max.String(),
		"existing":     existing,
		"retain":       p.Retain.String(),
		"retain_count": p.RetainCount,
		"every":        p.Every.String(),
	}
}
