// Package outcome holds the ends of runs and lives of tasks, as futures see them, and the done messages that report
// them.
package outcome

import (
	"fmt"

	"taskledger/engine/internal/command"
	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/task"
)

// maxInlineResult is the size of a result that a done message carries; of larger ones it says where to ask.
const maxInlineResult = 4 << 10

// Outcome is the end of a run, or of a life, as futures see it.
type Outcome struct {
	Task     events.TaskID
	Life     events.Ref // names the life
	Run      uint32     // of the life
	Rest     bool       // it ends every later run that was promised, too
	Ref      events.Ref // of the event that ended it
	At       events.Millis
	Behavior string
	Attempt  uint32
	Node     string      // session id of the one that made the attempt; known to the owner alone
	Status   task.Status // Success or Failure; 0: the life was ended by Deleted
	Result   events.Payload

	// Elided reports that the result, or the rest of the error, was left out; of Deleted, that no run was due or under
	// way, and it has ended none.
	Elided bool
	Err    *events.Error
}

// Of returns what an event means to futures; false: nothing.
func Of(t *projection.Task, ev *events.Event) (Outcome, bool) {
	o := Outcome{
		Task:     t.ID,
		Life:     t.Created,
		Run:      t.Runs,
		Ref:      ev.Position.Ref,
		At:       ev.At,
		Behavior: t.Kind.Behavior,
		Attempt:  t.Attempt,
		Node:     t.LastNode.String(),
		Status:   t.Status,
	}
	switch b := ev.Body.(type) {
	case *events.Succeeded:
		o.Result = b.Result
		return o, true
	case *events.Failed:
		o.Err = &b.Error
		return o, b.Run != 0
	case *events.Deleted:
		o.Status, o.Run, o.Rest, o.Elided = 0, t.Runs+1, true, t.Final()
		return o, true
	case *events.Rescheduled: // to never: a retry or repetition that was promised will not come
		if t.Final() && b.At == 0 {
			o.Err, o.Rest, o.Elided = t.Error, true, t.ErrorElided
			o.End()
			return o, true
		}
	}
	return o, false
}

// OfLast returns how the last run of a task ended that has ended.
func OfLast(t *projection.Task) Outcome {
	return Outcome{
		Task:    t.ID,
		Life:    t.Created,
		Run:     t.Runs,
		Ref:     t.Outcome,
		Attempt: t.Attempt,
		Status:  t.Status,
		Result:  t.Result,
		Err:     t.Error,
	}
}

// End turns the outcome of the last run into the outcome of a further one that was promised and taken away: a failure
// stays, after a success the further run counts as cancelled.
func (o *Outcome) End() {
	if o.Status == task.Failure {
		return
	}
	o.Status, o.Run, o.Result = task.Failure, o.Run+1, nil
	o.Err = &events.Error{Code: events.CodeCancelled, Message: "the repetition was cancelled"}
}

// Ends reports whether the outcome ends a run of its life.
func (o *Outcome) Ends(run uint32) bool { return o.Run == run || o.Run < run && o.Rest }

// Value returns the result and the error that Wait returns.
func (o *Outcome) Value() ([]byte, error) {
	switch o.Status {
	case task.Success:
		return o.Result.JSON()
	case task.Failure:
		return nil, &task.Error{
			Task:       o.Task,
			Attempt:    int(o.Attempt),
			Code:       o.Err.Code,
			Message:    o.Err.Message,
			Retryable:  o.Err.Retryable,
			Properties: o.Err.Properties,
		}
	}
	return nil, fmt.Errorf("task %s was deleted: %w", o.Task, task.ErrNotFound)
}

func (o *Outcome) Encode(w *wire.Writer, inline int) {
	w.Array(9)
	w.Text(string(o.Task))
	w.Uint(uint64(o.Life))
	w.Uint(uint64(o.Run))
	w.Bool(o.Rest)
	w.Uint(uint64(o.Ref))
	w.Uint(uint64(o.Attempt))
	w.Uint(uint64(o.Status))
	if len(o.Result) > inline || o.Elided {
		w.Bool(true)
	} else {
		w.Bytes(o.Result)
	}
	if o.Err == nil {
		w.Array(0)
	} else {
		w.Array(1)
		o.Err.Encode(w)
	}
}

func (o *Outcome) decode(r *wire.Reader) {
	tail := r.ArrayFrom(9)
	o.Task, o.Life, o.Run, o.Rest = events.TaskID(r.Text()), events.Ref(r.Uint()), uint32(r.Uint()), r.Bool()
	o.Ref, o.Attempt, o.Status = events.Ref(r.Uint()), uint32(r.Uint()), task.Status(r.Uint())
	if r.NextBool() {
		o.Elided = r.Bool()
	} else {
		o.Result = r.Bytes()
	}
	if r.Array() > 0 { // hundreds may fail at once: each error is read apart
		o.Err = new(events.Error)
		if err := command.DecodeLenient(r.Raw(), o.Err.Decode); err != nil {
			r.FailBy(err)
		}
	}
	r.Skip(tail)
	if o.Status == task.Failure && o.Err == nil || o.Status > task.Failure {
		r.Fail("outcome of status %d", o.Status)
	}
}

// Encode makes done messages of at most command.MaxAnswerBytes each.
func Encode(outcomes []Outcome) (messages [][]byte) {
	for len(outcomes) > 0 {
		n, size := 0, 0
		for n < len(outcomes) && size < command.MaxAnswerBytes/2 {
			size += 96 + min(len(outcomes[n].Result), maxInlineResult)
			if outcomes[n].Err != nil {
				size += len(outcomes[n].Err.Message)
			}
			n++
		}
		w := wire.Writer{B: make([]byte, 0, size)}
		w.Array(n)
		for i := range outcomes[:n] {
			outcomes[i].Encode(&w, maxInlineResult)
		}
		messages = append(messages, w.B)
		outcomes = outcomes[n:]
	}
	return messages
}

// Decode reads what Encode writes.
func Decode(data []byte) ([]Outcome, error) {
	r, err := command.Scanned(data)
	if err != nil {
		return nil, err
	}
	all := make([]Outcome, command.ArrayOf(r, data, 10))
	for i := range all {
		all[i].decode(r)
	}
	return all, r.Close()
}

// Inline returns the outcome without a result that is large.
func (o *Outcome) Inline() Outcome {
	small := *o
	if len(o.Result) > maxInlineResult {
		small.Result, small.Elided = nil, true
	}
	return small
}
