// Package view gives what a cluster answers the forms in which it is shown as JSON, the same wherever it is shown. Times are in UTC.
package view

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"taskledger/engine"
	"taskledger/events"
	"taskledger/ledger"
	"taskledger/projection"
	"taskledger/projection/name"
	"taskledger/store"
)

// Task is a task as JSON shows it.
type Task struct {
	ID                events.TaskID        `json:"id"`
	Version           events.Position      `json:"version"` // the position of its last event
	Behavior          string               `json:"behavior"`
	Status            projection.Status    `json:"status"`
	Substatus         projection.Substatus `json:"substatus"`
	Since             events.Millis        `json:"since"` // since when it has the substatus
	Priority          int64                `json:"priority"`
	Suspended         bool                 `json:"suspended,omitempty"`
	Cancelled         bool                 `json:"cancelled,omitempty"`
	Forgotten         bool                 `json:"forgotten,omitempty"`
	Attempt           uint32               `json:"attempt"`
	Failures          uint32               `json:"failures"`
	Lost              uint32               `json:"lost"`
	Runs              uint32               `json:"runs"`
	Node              string               `json:"node,omitempty"`     // name of the node that runs it
	Session           string               `json:"session,omitempty"`  // of that node
	LastNode          name.Name            `json:"last_node,omitzero"` // its session
	Creator           string               `json:"creator,omitempty"`
	SuspendedAt       events.Millis        `json:"suspended_at,omitzero"`
	CreatedAt         events.Millis        `json:"created_at"`
	ScheduleNotBefore events.Millis        `json:"schedule_not_before,omitzero"`
	StartedAt         events.Millis        `json:"started_at,omitzero"`
	RecheckNotBefore  events.Millis        `json:"recheck_not_before,omitzero"`
	LostNotBefore     events.Millis        `json:"lost_not_before,omitzero"`
	EndedAt           events.Millis        `json:"ended_at,omitzero"`
	Progress          *Progress            `json:"progress,omitempty"`
	Params            json.RawMessage      `json:"params,omitempty"`
	Result            json.RawMessage      `json:"result,omitempty"`
	Error             *events.Error        `json:"error,omitempty"`
	ErrorCut          bool                 `json:"error_cut,omitempty"` // the error is its beginning alone: GET of the task has the whole
	AskedBy           string               `json:"asked_by,omitempty"`  // the principal who has cancelled it, or has taken its next run away
	Reason            string               `json:"reason,omitempty"`    // why, as asked_by told
	SuspendedBy       string               `json:"suspended_by,omitempty"`
	SuspendedFor      string               `json:"suspended_for,omitempty"` // why, as suspended_by told
}

// Progress is how far a function has told that it is.
type Progress struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Note  string `json:"note,omitempty"`
}

// OfTask shows a task as it is at a time, with its version.
func OfTask(t projection.Task, version events.Position, now events.Millis) Task {
	v := Task{ID: t.ID, Version: version, Status: t.Status, Priority: t.Priority, Suspended: t.Suspended, Cancelled: t.Cancelled, Forgotten: t.Forgotten,
		Attempt: t.Attempt, Failures: t.Failures, Lost: t.Lost, Runs: t.Runs, Node: store.NodeName(t.Node), Session: t.Node, LastNode: t.LastNode, CreatedAt: t.CreatedAt,
		ScheduleNotBefore: t.ScheduleNotBefore(), StartedAt: t.StartedAt, RecheckNotBefore: t.RecheckNotBefore(),
		LostNotBefore: t.LostNotBefore(), EndedAt: t.EndedAt, Error: t.Error, ErrorCut: t.ErrorElided,
		Params: raw(t.Params), Result: raw(t.Result)}
	v.Substatus, v.Since = t.Substatus(now)
	if t.Wait != nil {
		v.AskedBy, v.Reason = t.Wait.By, t.Wait.Reason
		v.SuspendedAt, v.SuspendedBy, v.SuspendedFor = t.Wait.SuspendedAt, t.Wait.SuspendedBy, t.Wait.SuspendedFor
	}
	if t.Kind != nil {
		v.Behavior, v.Creator = t.Kind.Behavior, t.Kind.Creator
	}
	if t.Progress != nil {
		v.Progress = &Progress{t.Progress.Done, t.Progress.Total, t.Progress.Note}
	}
	return v
}

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

// Caller is what is known of who asked besides the principal.
type Caller struct {
	RequestID   string `json:"request_id,omitempty"`
	Traceparent string `json:"traceparent,omitempty"`
}

// OfEvent shows an event.
func OfEvent(e ledger.Event) Event {
	v := Event{e.Position, e.At, e.Task, recordOf(&e), e.Seq, e.Kind(), e.Behavior, store.NodeName(e.Node), e.Node, e.Asker.Principal, e.RequestID, body(e.Body), nil}
	if caller := (Caller{e.Asker.RequestID, e.Asker.Traceparent}); caller != (Caller{}) {
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

// body returns what an event says beyond its kind, nil for nothing.
func body(of events.Body) any {
	switch b := of.(type) {
	case *events.Created:
		return withTies(object{"priority": b.Priority, "not_before": b.NotBefore, "params": raw(b.Params),
			"policy": policy(b.Policy)}, b.Ties)
	case *events.Started:
		return object{"attempt": b.Attempt, "offer": b.Offer, "lease_ms": int64(b.Lease)}
	case *events.Progressed:
		return Progress{b.Done, b.Total, b.Note}
	case *events.Succeeded:
		return withNext(object{"result": raw(b.Result), "run": b.Run}, b.Next)
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
		return withTerms(object{"params": raw(b.Params)}, b.Terms)
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
	case *events.CancelRequested:
		return object{"reason": b.Reason}
	case *events.ItemAdded:
		return object{"id": b.ID, "group": b.Group, "available": b.At, "owner": b.Owner, "data": text(b.Data)}
	case *events.ItemReplaced:
		return withText(object{"from": b.From, "to": b.To, "available": b.At, "owner": b.Owner}, b.Data)
	case *events.ItemRemoved:
		return object{"id": b.ID, "owner": b.Owner}
	case *events.StoreForgotten:
		return object{"store": b.Store, "last": b.Last}
	}
	return nil
}

// withText adds the data of an item where an event changes them.
func withText(o object, data events.Payload) object {
	if data != nil {
		o["data"] = text(data)
	}
	return o
}

// text is a payload of bytes as text, or as raw shows it where they are none.
func text(p events.Payload) any {
	if data, err := p.Bytes(); err == nil && utf8.Valid(data) {
		return string(data)
	}
	return raw(p)
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
	for name, is := range map[string]string{"parent": string(t.Parent), "schedule": t.Schedule, "group": t.Group} {
		if is != "" {
			o[name] = is
		}
	}
	return o
}

func policy(p events.Policy) object {
	existing := "return-recorded"
	if p.Existing == events.RunAgain {
		existing = "run-again"
	}
	return object{"timeout": p.Timeout.String(), "max_attempts": p.MaxAttempts, "max_lost": p.MaxLost, "lost_delay": p.LostDelay.String(),
		"backoff_base": p.Backoff.Base.String(), "backoff_max": p.Backoff.Max.String(), "existing": existing, "retain": p.Retain.String(),
		"retain_count": p.RetainCount, "every": p.Every.String()}
}

// Node is a member as JSON shows it.
type Node struct {
	Name      string   `json:"node"`
	Session   string   `json:"session"`
	Version   string   `json:"version"`
	Behaviors []string `json:"behaviors"`
	Types     string   `json:"types"`
	Slots     int      `json:"slots"`
	Owner     bool     `json:"owner"`
	Draining  bool     `json:"draining"`
	JoinedAt  string   `json:"joined_at"`

	Reads store.Reads `json:"reads"`

	ClockAheadMs int64 `json:"clock_ahead_ms,omitempty"`
}

// OfNode shows a member.
func OfNode(n store.NodeInfo) Node {
	return Node{n.Name, n.ID, n.Version, n.Behaviors, n.Types, n.Slots, n.Owner, n.Draining,
		time.UnixMilli(n.Joined).UTC().Format(time.RFC3339), n.Reads, n.ClockAhead}
}

// Owner is the node that owns a shard, by its name and its session id.
func Owner(name, session string) string {
	if name == session {
		return session
	}
	return strings.TrimSpace(name + " " + session)
}

// Clock says in words how far a node's clock is off the others'.
func Clock(aheadMs int64) string {
	switch ahead := time.Duration(aheadMs) * time.Millisecond; {
	case ahead > 0:
		return ahead.String() + " ahead"
	case ahead < 0:
		return (-ahead).String() + " behind"
	}
	return "-"
}

// raw is a payload as JSON, nil for none. One that is no JSON text, or no UTF-8, is shown as its codec and its bytes.
func raw(p events.Payload) json.RawMessage {
	text, err := p.JSON()
	if err == nil && (text == nil || json.Valid(text) && utf8.Valid(text)) {
		return text
	}
	return fmt.Appendf(nil, `{"codec":%d,"base64":%q}`, p.Codec(), base64.StdEncoding.EncodeToString(p[min(len(p), 1):]))
}

// Outcome is an outcome as JSON shows it.
type Outcome struct {
	ID     events.TaskID     `json:"id"`
	Status projection.Status `json:"status,omitzero"`
	Result json.RawMessage   `json:"result,omitempty"`
	Error  *Error            `json:"error,omitempty"`
}

// Error is why a task failed, and in which attempt.
type Error struct {
	Attempt int `json:"attempt"`
	events.Error
}

// OfOutcome shows how a task ended: failed is nil after a success.
func OfOutcome(id events.TaskID, result []byte, failed *engine.TaskError) Outcome {
	v := Outcome{ID: id, Status: projection.Success, Result: raw(events.JSON(result))}
	if failed != nil {
		v.Status = projection.Failure
		v.Error = &Error{failed.Attempt, events.Error{Code: failed.Code, Message: failed.Message,
			Retryable: failed.Retryable, Properties: failed.Properties}}
	}
	return v
}
