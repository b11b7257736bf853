package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/projection"
	"taskledger/task"
)

// maxInlineResult is the size of a result that a done message carries; of larger ones it says where to ask.
const maxInlineResult = 4 << 10

// outcome is the end of a run, or of a life, as futures see it.
type outcome struct {
	task     events.TaskID
	life     events.Ref // names the life
	run      uint32     // of the life
	ref      events.Ref // of the event that ended it
	at       events.Millis
	behavior string
	attempt  uint32
	status   projection.Status // Success or Failure; 0: the life was ended by Deleted
	result   events.Payload
	elided   bool // the result was left out; of Deleted: no run was due or under way, and it has ended none
	err      *events.Error
}

// outcomeOf returns what an event means to futures; false: nothing.
func outcomeOf(t *projection.Task, ev *events.Event) (outcome, bool) {
	o := outcome{task: t.ID, life: t.Created, run: t.Runs, ref: ev.Position.Ref, at: ev.At, behavior: t.Kind.Behavior,
		attempt: t.Attempt, status: t.Status}
	switch b := ev.Body.(type) {
	case *events.Succeeded:
		o.result = b.Result
		return o, true
	case *events.Failed:
		o.err = &b.Error
		return o, b.Run != 0
	case *events.Deleted:
		o.status, o.run, o.elided = 0, t.Runs+1, t.Final()
		return o, true
	case *events.Rescheduled: // to never: a retry or repetition that was promised will not come
		if t.Final() && b.At == 0 {
			o.err = t.Error
			o.end()
			return o, true
		}
	}
	return o, false
}

// outcomeOfLast returns how the last run of a task ended that has ended.
func outcomeOfLast(t *projection.Task) outcome {
	return outcome{task: t.ID, life: t.Created, run: t.Runs, ref: t.Outcome, attempt: t.Attempt, status: t.Status, result: t.Result, err: t.Error}
}

// end turns the outcome of the last run into that of a further one which was promised and taken away: the failure stays,
// after a success the run was cancelled.
func (o *outcome) end() {
	if o.status == projection.Failure {
		return
	}
	o.status, o.run, o.result = projection.Failure, o.run+1, nil
	o.err = &events.Error{Code: events.CodeCancelled, Message: "the repetition was cancelled"}
}

// value is what Wait returns.
func (o *outcome) value() ([]byte, error) {
	switch o.status {
	case projection.Success:
		return o.result.JSON()
	case projection.Failure:
		return nil, &task.Error{Task: o.task, Attempt: int(o.attempt), Code: o.err.Code, Message: o.err.Message,
			Retryable: o.err.Retryable, Properties: o.err.Properties}
	}
	return nil, fmt.Errorf("task %s was deleted: %w", o.task, task.ErrNotFound)
}

func (o *outcome) encode(w *wire.Writer, inline int) {
	w.Array(8)
	w.Text(string(o.task))
	w.Uint(uint64(o.life))
	w.Uint(uint64(o.run))
	w.Uint(uint64(o.ref))
	w.Uint(uint64(o.attempt))
	w.Uint(uint64(o.status))
	if len(o.result) > inline || o.elided {
		w.Bool(true)
	} else {
		w.Bytes(o.result)
	}
	if o.err == nil {
		w.Array(0)
	} else {
		w.Array(1)
		o.err.Encode(w)
	}
}

func (o *outcome) decode(r *wire.Reader) {
	r.ArrayOf(8)
	o.task, o.life, o.run, o.ref = events.TaskID(r.Text()), events.Ref(r.Uint()), uint32(r.Uint()), events.Ref(r.Uint())
	o.attempt, o.status = uint32(r.Uint()), projection.Status(r.Uint())
	if r.NextBool() {
		o.elided = r.Bool()
	} else {
		o.result = r.Bytes()
	}
	if r.Array() > 0 {
		o.err = new(events.Error)
		o.err.Decode(r)
	}
	if o.status == projection.Failure && o.err == nil || o.status > projection.Failure {
		r.Fail("outcome of status %d", o.status)
	}
}

// encodeOutcomes makes done messages of at most maxAnswerBytes each.
func encodeOutcomes(outcomes []outcome) (messages [][]byte) {
	for len(outcomes) > 0 {
		n, size := 0, 0
		for n < len(outcomes) && size < maxAnswerBytes/2 {
			size += 96 + min(len(outcomes[n].result), maxInlineResult)
			if outcomes[n].err != nil {
				size += len(outcomes[n].err.Message)
			}
			n++
		}
		w := wire.Writer{B: make([]byte, 0, size)}
		w.Array(n)
		for i := range outcomes[:n] {
			outcomes[i].encode(&w, maxInlineResult)
		}
		messages = append(messages, w.B)
		outcomes = outcomes[n:]
	}
	return messages
}

func decodeOutcomes(data []byte) ([]outcome, error) {
	r, err := scanned(data)
	if err != nil {
		return nil, err
	}
	all := make([]outcome, arrayOf(r, data, 9))
	for i := range all {
		all[i].decode(r)
	}
	return all, r.Close()
}

// maxPublicResult is the size of a result that a public message carries.
const maxPublicResult = 64 << 10

// cloudEvent returns the public message of an outcome: a CloudEvents 1.0 JSON document. Ids and behaviors need no
// escaping; what users wrote does.
func (o *outcome) cloudEvent(dst []byte, source string, shard int) []byte {
	dst = append(dst, `{"specversion":"1.0","id":"`...)
	dst = events.Position{Shard: uint16(shard), Ref: o.ref}.Append(dst)
	dst = append(dst, `","source":"`...)
	dst = append(dst, source...)
	dst = append(dst, `","type":"taskledger.task.completed","subject":"`...)
	dst = append(dst, o.task...)
	dst = append(dst, `","time":"`...)
	dst = o.at.Time().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, `","datacontenttype":"application/json","data":{"task":"`...)
	dst = append(dst, o.task...)
	dst = append(dst, `","behavior":"`...)
	dst = append(dst, o.behavior...)
	dst = append(dst, `","status":"`...)
	dst = append(dst, o.status.String()...)
	dst = append(dst, `","run":`...)
	dst = strconv.AppendUint(dst, uint64(o.run), 10)
	dst = append(dst, `,"attempt":`...)
	dst = strconv.AppendUint(dst, uint64(o.attempt), 10)
	if o.err != nil {
		dst = append(dst, `,"error":`...)
		dst = appendJSON(dst, o.err)
	}
	if text, err := o.result.JSON(); err == nil && text != nil {
		if len(text) > maxPublicResult {
			dst = append(dst, `,"result_omitted":true`...)
		} else {
			dst = append(append(dst, `,"result":`...), text...)
		}
	}
	return append(dst, "}}"...)
}

func appendJSON(dst []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // strings always marshal
		return append(dst, "null"...)
	}
	return append(dst, text...)
}

// inline returns the outcome without a result that is large.
func (o *outcome) inline() outcome {
	small := *o
	if len(o.result) > maxInlineResult {
		small.result, small.elided = nil, true
	}
	return small
}
