// Package events is the vocabulary of the journal: what can happen to a task, in which form it is stored, and the
// limits of it. It does no I/O and knows no clock.
//
// An Event is one transition of one task; an Entry is the numbered, hash-chained record of the events of one
// commit. The stored forms are described at Builder; golden files pin every one of them for ever.
package events

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	"taskledger/internal/wire"
)

// Event is one committed transition of one task, or of a record that is none. Events are never changed.
type Event struct {
	Task      TaskID // of an item what StoreItem returns; "" of any other record that is no task
	Seq       uint64 // 1, 2, 3 ... without gaps within a life of the task
	Prev      Ref    // the task's event before this one, in the same shard; 0 for the first
	Origin    int    // 1 + index of the Origin in the entry; 0: the owner itself, as for Lost and timed starts
	RequestID string // of the submit that caused it, if it gave one
	Body      Body

	// Known from the entry, not stored with the event.
	Position Position
	At       Millis
	Caller   Caller // who asked; zero = the owner itself
}

// Kind returns the kind of the body.
func (e *Event) Kind() Kind { return e.Body.Kind() }

// Body holds the fields of one kind of event. The set is closed: pointers to the types below.
type Body interface {
	Kind() Kind
	payload() Payload
	encode(w *wire.Writer)
	decode(r *wire.Reader, p Payload)
}

// Created begins a life of a task.
type Created struct {
	Behavior  string
	Policy    Policy // complete
	Priority  int64
	NotBefore Millis // never 0
	Params    Payload
	Ties      Ties
}

// Started begins an attempt on a node. The event's Ref names the attempt from now on and is its fencing token.
type Started struct {
	Node    string // session id
	Attempt uint32 // 1, 2, 3 ... within the life
	Offer   uint64 // number of the offer it answers; 0: the owner started it on its own node
	Lease   Millis // TTL of the node's session: the recheck stamp is At+Lease/3, the lost stamp At+Lease
}

// Progressed records the last report of a running attempt about itself.
type Progressed struct {
	Done, Total int64
	Note        string
}

// Succeeded ends an attempt, and the run.
type Succeeded struct {
	Result Payload
	Next   Millis // of a repetition; 0 = none
	Run    uint32 // which run of the life this ends: 1, 2, 3 ...
}

// Failed ends an attempt, or the run of a task that waits.
type Failed struct {
	Error Error
	Next  Millis // of a retry, or of a repetition where this ends a run; 0 = neither is due
	Run   uint32 // which run of the life this ends; 0 when it will be retried
}

// Error says why a task failed, equal on every node.
type Error struct {
	Code       string            `json:"code"` // one of the Code constants or the behavior's own
	Message    string            `json:"message,omitempty"`
	Retryable  bool              `json:"retryable,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

// Codes that the engine gives to failures.
const (
	CodeFailed    = "failed"    // the handler returned an error without a code
	CodeCancelled = "cancelled" // somebody asked for it
	CodeTimeout   = "timeout"   // the attempt exceeded its time-out
	CodeDeadline  = "deadline"  // the run had not ended by its deadline
	CodeLost      = "lost"      // its nodes died too often
	CodePanic     = "panic"     // the handler panicked or ended its goroutine
	CodeRejected  = "rejected"  // parameters or result cannot be decoded or exceed a limit
)

// Snoozed ends an attempt without failure; the task runs again later.
type Snoozed struct{ Until Millis }

// Lost gives up an attempt whose node's session has ended.
type Lost struct {
	Until Millis
	Node  string // session id of the node
}

// Released gives back an attempt that its node does not run, or no longer.
type Released struct {
	Until Millis
	Node  string // session id of the node
}

// Rescheduled sets the next run of a task that waits or has ended; 0 = never.
type Rescheduled struct {
	At     Millis
	Terms  *Terms // nil = as before
	Reason string // why a further run was cancelled; "" = none was given
}

// Merged replaces the parameters. On a RUNNING task it makes a further run, with them, due at the end of this one.
type Merged struct {
	Params Payload
	Terms  *Terms // nil = as before
}

// Joined records a submit that shares the task as it is, so that the same request is known when it comes again.
type Joined struct{ Terms *Terms } // nil = as before

// Described records the tags of a task, and the deadline of the run that a submit begins. It replaces both.
type Described struct {
	Tags     []string // in order, each once
	Deadline Millis   // of the run; 0 = none
}

// Suspended keeps a task from starting; a running attempt goes on.
type Suspended struct{ Reason string }

// Resumed ends Suspended.
type Resumed struct{}

// CancelRequested says that the running attempt shall end and nothing start after it.
type CancelRequested struct{ Reason string }

// Deleted ends the life of a task.
type Deleted struct{}

func (*Created) Kind() Kind         { return KindCreated }
func (*Started) Kind() Kind         { return KindStarted }
func (*Progressed) Kind() Kind      { return KindProgressed }
func (*Succeeded) Kind() Kind       { return KindSucceeded }
func (*Failed) Kind() Kind          { return KindFailed }
func (*Snoozed) Kind() Kind         { return KindSnoozed }
func (*Lost) Kind() Kind            { return KindLost }
func (*Released) Kind() Kind        { return KindReleased }
func (*Rescheduled) Kind() Kind     { return KindRescheduled }
func (*Merged) Kind() Kind          { return KindMerged }
func (*Suspended) Kind() Kind       { return KindSuspended }
func (*Resumed) Kind() Kind         { return KindResumed }
func (*CancelRequested) Kind() Kind { return KindCancelRequested }
func (*Deleted) Kind() Kind         { return KindDeleted }
func (*Joined) Kind() Kind          { return KindJoined }
func (*Described) Kind() Kind       { return KindDescribed }

func (b *Created) payload() Payload        { return b.Params }
func (*Started) payload() Payload          { return nil }
func (*Progressed) payload() Payload       { return nil }
func (b *Succeeded) payload() Payload      { return b.Result }
func (*Failed) payload() Payload           { return nil }
func (*Snoozed) payload() Payload          { return nil }
func (*Lost) payload() Payload             { return nil }
func (*Released) payload() Payload         { return nil }
func (*Rescheduled) payload() Payload      { return nil }
func (b *Merged) payload() Payload         { return b.Params }
func (*Suspended) payload() Payload        { return nil }
func (*Resumed) payload() Payload          { return nil }
func (*CancelRequested) payload() Payload  { return nil }
func (*Deleted) payload() Payload          { return nil }
func (*Joined) payload() Payload           { return nil }
func (*Described) payload() Payload        { return nil }
func (b *Suspended) encode(w *wire.Writer) { w.Array(1); w.Text(b.Reason) }
func (*Resumed) encode(w *wire.Writer)     { w.Array(0) }
func (*Deleted) encode(w *wire.Writer)     { w.Array(0) }
func (b *Snoozed) encode(w *wire.Writer)   { w.Array(1); w.Int(int64(b.Until)) }
func (b *Lost) encode(w *wire.Writer)      { w.Array(2); w.Int(int64(b.Until)); w.Text(b.Node) }
func (b *Released) encode(w *wire.Writer)  { w.Array(2); w.Int(int64(b.Until)); w.Text(b.Node) }
func (b *Merged) encode(w *wire.Writer)    { w.Array(tail(b.Terms != nil)); encodeTerms(w, b.Terms) }
func (b *Joined) encode(w *wire.Writer)    { w.Array(tail(b.Terms != nil)); encodeTerms(w, b.Terms) }
func (b *Progressed) encode(w *wire.Writer) {
	w.Array(3)
	w.Int(b.Done)
	w.Int(b.Total)
	w.Text(b.Note)
}

func (b *Described) encode(w *wire.Writer) {
	w.Array(2)
	EncodeTags(w, b.Tags)
	w.Int(int64(b.Deadline))
}

func (b *Succeeded) encode(w *wire.Writer)       { w.Array(2); w.Int(int64(b.Next)); w.Uint(uint64(b.Run)) }
func (b *CancelRequested) encode(w *wire.Writer) { w.Array(1); w.Text(b.Reason) }

func (b *Rescheduled) encode(w *wire.Writer) {
	reasoned := b.Reason != ""
	w.Array(1 + tail(b.Terms != nil || reasoned) + tail(reasoned))
	w.Int(int64(b.At))
	if b.Terms == nil && reasoned {
		w.Array(0)
	}
	encodeTerms(w, b.Terms)
	if reasoned {
		w.Text(b.Reason)
	}
}

func (b *Started) encode(w *wire.Writer) {
	w.Array(4)
	w.Text(b.Node)
	w.Uint(uint64(b.Attempt))
	w.Uint(b.Offer)
	w.Int(int64(b.Lease))
}

func (b *Created) encode(w *wire.Writer) {
	tied := b.Ties != Ties{}
	w.Array(4 + tail(tied))
	w.Text(b.Behavior)
	w.Int(b.Priority)
	w.Int(int64(b.NotBefore))
	b.Policy.Encode(w)
	if tied {
		b.Ties.encode(w)
	}
}

func (b *Failed) encode(w *wire.Writer) {
	w.Array(3)
	b.Error.Encode(w)
	w.Int(int64(b.Next))
	w.Uint(uint64(b.Run))
}

func (b *Suspended) decode(r *wire.Reader, _ Payload) { r.ArrayOf(1); b.Reason = r.Text() }
func (*Resumed) decode(r *wire.Reader, _ Payload)     { r.ArrayOf(0) }
func (*Deleted) decode(r *wire.Reader, _ Payload)     { r.ArrayOf(0) }
func (b *Joined) decode(r *wire.Reader, _ Payload)    { b.Terms = decodeTerms(r, r.Array(), 1) }
func (b *Snoozed) decode(r *wire.Reader, _ Payload)   { r.ArrayOf(1); b.Until = Millis(r.Int()) }
func (b *Lost) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(2)
	b.Until, b.Node = Millis(r.Int()), r.Text()
}

func (b *Released) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(2)
	b.Until, b.Node = Millis(r.Int()), r.Text()
}

func (b *Described) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(2)
	b.Tags, b.Deadline = DecodeTags(r), Millis(r.Int())
}

func (b *Merged) decode(r *wire.Reader, p Payload) {
	b.Terms, b.Params = decodeTerms(r, r.Array(), 1), p
}

func (b *Succeeded) decode(r *wire.Reader, p Payload) {
	r.ArrayOf(2)
	b.Next, b.Run, b.Result = Millis(r.Int()), uint32(upTo(r, math.MaxUint32)), p
}

func (b *Rescheduled) decode(r *wire.Reader, _ Payload) {
	n := r.Array()
	b.At = Millis(r.Int())
	switch {
	case n < 3:
		b.Terms = decodeTerms(r, n, 2)
	case n > 3:
		r.Tail(n, 3)
	default:
		if inner := r.Array(); inner != 0 {
			b.Terms = readTerms(r, inner)
		}
		if b.Reason = r.Text(); b.Reason == "" {
			r.Fail("a reason of nothing")
		}
	}
}

func (b *CancelRequested) decode(r *wire.Reader, _ Payload) { r.ArrayOf(1); b.Reason = r.Text() }

func (b *Progressed) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(3)
	b.Done, b.Total, b.Note = r.Int(), r.Int(), r.Text()
}

func (b *Started) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(4)
	b.Node, b.Attempt, b.Offer, b.Lease = r.Text(), uint32(upTo(r, math.MaxUint32)), r.Uint(), Millis(r.Int())
}

func (b *Created) decode(r *wire.Reader, p Payload) {
	n := r.Array()
	b.Behavior, b.Priority, b.NotBefore, b.Params = r.Text(), r.Int(), Millis(r.Int()), p
	b.Policy.Decode(r)
	switch {
	case n < 4:
		r.Fail("array of %d, want 4 or 5", n)
	case n > 5:
		r.Tail(n, 5)
	case n == 5:
		b.Ties.decode(r)
	}
}

func (b *Failed) decode(r *wire.Reader, _ Payload) {
	r.ArrayOf(3)
	b.Error.Decode(r)
	b.Next, b.Run = Millis(r.Int()), uint32(upTo(r, math.MaxUint32))
}

// Encode writes the error as an array: code, message, retryable, and an array of property names and values, sorted.
func (e *Error) Encode(w *wire.Writer) {
	w.Array(4)
	w.Text(e.Code)
	w.Text(e.Message)
	w.Bool(e.Retryable)
	w.Array(2 * len(e.Properties))
	for _, name := range slices.Sorted(maps.Keys(e.Properties)) {
		w.Text(name)
		w.Text(e.Properties[name])
	}
}

// Decode reads what Encode wrote.
func (e *Error) Decode(r *wire.Reader) { e.DecodeUpTo(r, MaxProperties) }

// DecodeUpTo is Decode of an error that may have more properties than an event holds, so that it can be refused by
// name.
func (e *Error) DecodeUpTo(r *wire.Reader, properties int) {
	r.ArrayOf(4)
	e.Code, e.Message, e.Retryable = r.Text(), r.Text(), r.Bool()
	n := r.Array()
	if n > 2*properties || n%2 != 0 {
		r.Fail("array of %d property names and values", n)
		return
	}
	if n > 0 {
		e.Properties = make(map[string]string, n/2)
		for range n / 2 {
			name := r.Text()
			e.Properties[name] = r.Text()
		}
	}
}

// Fit returns the error cut to what an event may hold.
func (e Error) Fit() Error {
	e.Code = Head(e.Code, MaxNameBytes)
	e.Message = Cut(e.Message, MaxPayloadBytes/2)
	total := 0
	for name, value := range e.Properties {
		total += len(name) + len(value)
	}
	if len(e.Properties) > MaxProperties || total > MaxPayloadBytes/2 {
		e.Properties = map[string]string{"properties": fmt.Sprintf("dropped: %d of %d bytes exceed the limits of %d and %d",
			len(e.Properties), total, MaxProperties, MaxPayloadBytes/2)}
	}
	return e
}

// Cut shortens a text to at most n bytes and says so in it, where it is longer.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = " ... (cut)"
	return Head(s, n-len(mark)) + mark
}

// Head returns the beginning of a text, at most n bytes of it, and no part of a character.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
