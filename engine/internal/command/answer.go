package command

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
	"taskledger/task"
)

// Answer reports the result of a command.
type Answer struct {
	Code     AnswerCode
	Joined   bool       // the task that is submitted existed already
	Repeated bool       // the submit joined, and the same request had made or changed the task before
	Life     events.Ref // position of Created, which names the life of the task
	Run      uint32     // the run whose end is the outcome of the submit
	Text     string     // the cause of a refusal, or the field that is wrong
	Number   int64      // a refusal's limit, phase, or wait in ms; if a submit joined a run to come, the last event
	Data     []byte     // the answer to a query, the names of attempts for Reconcile, the assignments for Offer
}

// AnswerCode says what kind of answer it is.
type AnswerCode uint8

const (
	AnswerOK AnswerCode = iota
	AnswerNotFound
	AnswerStale    // the attempt is over or not the node's; the outcome was not recorded
	AnswerChanged  // a merge or an operation came too late: the task has changed since it was seen
	AnswerMerge    // the task exists, and the submitter wants to combine parameters
	AnswerState    // the task's state does not allow it: text
	AnswerInvalid  // field and problem: text
	AnswerOverload // text, and milliseconds in number
	AnswerTryAgain // did not fit into the answer
	AnswerNotKept  // it is no longer known
	AnswerUnserved // the shard is quarantined, or waits for room in the store: text
	// AnswerStoreFull replaces the answers: the batch waits for room in the store; text and number as of
	// AnswerOverload. To a question for an outcome: ask again.
	AnswerStoreFull
	AnswerClock         // made too long ago, or too far ahead: text
	AnswerBug           // the owner decided what the fold refuses, and has changed nothing: text
	AnswerKeyUsed       // the key stands for another request: text
	AnswerConflict      // the items of a store do not allow it: data
	AnswerForgotten     // the request may have been carried out: its key may have been forgotten
	answerCodeCount int = iota
)

// maxRefusalBytes bounds the text of a refusal, which entries may record.
const maxRefusalBytes = 128

// Refused is a refusal with a text, cut at maxRefusalBytes.
func Refused(code AnswerCode, format string, args ...any) Answer {
	text := fmt.Sprintf(format, args...)
	return Answer{Code: code, Text: events.Head(text, maxRefusalBytes)}
}

// Err returns what the caller of a command sees.
func (a Answer) Err(id events.TaskID) error {
	switch a.Code {
	case AnswerOK:
		return nil
	case AnswerNotFound:
		return fmt.Errorf("task %s: %w", id, task.ErrNotFound)
	case AnswerNotKept:
		return fmt.Errorf("task %s: %w", id, task.ErrNotKept)
	case AnswerState:
		return &task.StateError{Task: id, Problem: a.Text}
	case AnswerChanged:
		return &task.StateError{Task: id, Problem: "it has changed since it was seen", Changed: true}
	case AnswerKeyUsed:
		return fmt.Errorf("%w: %w", &task.StateError{Task: id, Problem: "key " + a.Text}, task.ErrOtherRequest)
	case AnswerInvalid:
		if field, problem, ok := strings.Cut(a.Text, ": "); ok { // it is the text of another
			return &store.InvalidError{Field: field, Problem: problem}
		}
		return &store.InvalidError{Field: "command", Problem: a.Text}
	case AnswerClock:
		return &store.InvalidError{Field: "clock", Problem: a.Text}
	case AnswerOverload:
		return &task.OverloadError{Cause: a.Text, RetryAfter: events.Milliseconds(a.Number)}
	case AnswerUnserved:
		if id == "" {
			return fmt.Errorf("%w: %s", store.ErrUnavailable, a.Text)
		}
		return fmt.Errorf("task %s: %w: %s", id, store.ErrUnavailable, a.Text)
	case AnswerStale:
		return errStale
	case AnswerBug:
		return fmt.Errorf("task %s: nothing was changed, because of a bug in the shard's owner: %s", id, a.Text)
	}
	return fmt.Errorf("task %s: answer %d: %s", id, a.Code, a.Text)
}

var errStale = errors.New("the attempt is over or runs elsewhere")

// EncodeAnswers writes the answers to a batch, in the order of its commands.
func EncodeAnswers(answers []Answer) []byte {
	n := 8
	for i := range answers {
		n += 16 + len(answers[i].Text) + len(answers[i].Data)
	}
	w := wire.Writer{B: make([]byte, 0, n)}
	w.Array(len(answers))
	for i := range answers {
		answers[i].encode(&w)
	}
	return w.B
}

// encode writes a plain code for the many answers that say nothing else.
func (a *Answer) encode(w *wire.Writer) {
	if a.Text == "" && a.Number == 0 && a.Data == nil && !a.Joined && !a.Repeated {
		w.Array(3)
		w.Uint(uint64(a.Code))
		w.Uint(uint64(a.Life))
		w.Uint(uint64(a.Run))
		return
	}
	w.Array(8)
	w.Uint(uint64(a.Code))
	w.Uint(uint64(a.Life))
	w.Uint(uint64(a.Run))
	w.Bool(a.Joined)
	w.Bool(a.Repeated)
	w.Text(a.Text)
	w.Int(a.Number)
	w.Bytes(a.Data)
}

// DecodeAnswers reads what EncodeAnswers writes. An answer with a code that is not known is read as AnswerState.
func DecodeAnswers(data []byte) ([]Answer, error) {
	r, err := Scanned(data)
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, ArrayOf(r, data, 4))
	for i := range answers {
		a := &answers[i]
		fields := r.Array()
		if fields != 3 && fields < 8 {
			r.Fail("answer of %d fields", fields)
			break
		}
		code := r.Uint()
		a.Life, a.Run = events.Ref(r.Uint()), uint32(r.Uint())
		if fields >= 8 {
			a.Joined, a.Repeated, a.Text, a.Number, a.Data = r.Bool(), r.Bool(), r.Text(), r.Int(), r.Bytes()
			r.Skip(fields - 8)
		}
		a.setCode(code)
	}
	return answers, r.Close()
}

// setCode takes a code that a later release gives for a refusal: its batch is answered, and must not be sent for ever.
func (a *Answer) setCode(code uint64) {
	if code < uint64(answerCodeCount) {
		a.Code = AnswerCode(code)
		return
	}
	a.Code, a.Text = AnswerState, cmp.Or(a.Text, fmt.Sprintf("answer %d of a later release", code))
}

// ArrayOf reads the head of an array in data whose elements take at least each bytes: a slice of so many may be made.
func ArrayOf(r *wire.Reader, data []byte, each int) int {
	n := r.Array()
	if n > len(data)/each {
		r.Fail("array of %d in %d bytes", n, len(data))
		return 0
	}
	return n
}

// Fit adds the answer to others of the given size and returns the sum. An answer that would make them too large
// together, unless it is the first, is left out and has to be asked for again; so are all that come after it.
func (a *Answer) Fit(size int) int {
	n := answerBytes + len(a.Text) + len(a.Data)
	if size > 0 && size+n > MaxReadBytes {
		*a = Answer{Code: AnswerTryAgain}
		return MaxReadBytes + 1
	}
	return size + n
}

// StoreFull gives the reason why nothing can be recorded, and the remedy.
const StoreFull = "the store is full: compact, defragment and disarm the alarm of etcd, or make room on the disk of files"

// Overload refuses a submit for now.
func Overload(format string, args ...any) Answer {
	a := Refused(AnswerOverload, format, args...)
	a.Number = 1000
	return a
}
