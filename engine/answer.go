package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"taskledger/events"
	"taskledger/internal/wire"
	"taskledger/store"
	"taskledger/task"
)

// answer is what became of a command.
type answer struct {
	code   answerCode
	joined bool       // of a submit: the task existed
	life   events.Ref // position of Created: names the life of the task
	run    uint32     // of a submit: the run whose end is its outcome
	text   string     // of a refusal: its cause, or the field
	number int64      // a refusal's limit, phase, or milliseconds to wait; the task's last event if the submit joined a run to come
	data   []byte     // of a query, of a roll call: the names of attempts, of an offer: assignments
}

type answerCode uint8

const (
	answerOK answerCode = iota
	answerNotFound
	answerStale         // the attempt is over or not the node's; the outcome was not recorded
	answerChanged       // a merge came too late: the task has changed since
	answerMerge         // the task exists, and the submitter wants to combine parameters
	answerState         // the task's state does not allow it: text
	answerInvalid       // field and problem: text
	answerOverload      // text, and milliseconds in number
	answerTryAgain      // did not fit into the answer
	answerNotKept       // it is no longer known
	answerUnserved      // the shard is quarantined, or waits for room in the store: text
	answerHeld          // instead of answers: the batch waits for room in the store; text and number as of answerOverload. To a question for an outcome: ask again
	answerClock         // made too long ago, or too far ahead: text
	answerCodeCount int = iota
)

// maxRefusalBytes bounds the text of a refusal, which entries may record.
const maxRefusalBytes = 128

func refused(code answerCode, format string, args ...any) answer {
	text := fmt.Sprintf(format, args...)
	return answer{code: code, text: text[:min(len(text), maxRefusalBytes)]}
}

// err returns what the caller of a command sees.
func (a answer) err(id events.TaskID) error {
	switch a.code {
	case answerOK:
		return nil
	case answerNotFound:
		return fmt.Errorf("task %s: %w", id, task.ErrNotFound)
	case answerNotKept:
		return fmt.Errorf("task %s: %w", id, task.ErrNotKept)
	case answerState:
		return &task.StateError{Task: id, Problem: a.text}
	case answerInvalid:
		if field, problem, ok := strings.Cut(a.text, ": "); ok { // it is the text of another
			return &store.InvalidError{Field: field, Problem: problem}
		}
		return &store.InvalidError{Field: "command", Problem: a.text}
	case answerClock:
		return &store.InvalidError{Field: "clock", Problem: a.text}
	case answerOverload:
		return &task.OverloadError{Cause: a.text, RetryAfter: time.Duration(a.number) * time.Millisecond}
	case answerUnserved:
		if id == "" {
			return fmt.Errorf("%w: %s", store.ErrUnavailable, a.text)
		}
		return fmt.Errorf("task %s: %w: %s", id, store.ErrUnavailable, a.text)
	case answerStale:
		return errStale
	}
	return fmt.Errorf("task %s: answer %d: %s", id, a.code, a.text)
}

var errStale = errors.New("the attempt is over or runs elsewhere")

func encodeAnswers(answers []answer) []byte {
	n := 8
	for i := range answers {
		n += 16 + len(answers[i].text) + len(answers[i].data)
	}
	w := wire.Writer{B: make([]byte, 0, n)}
	w.Array(len(answers))
	for i := range answers {
		answers[i].encode(&w)
	}
	return w.B
}

// encode writes a plain code for the many answers that say nothing else.
func (a *answer) encode(w *wire.Writer) {
	if a.text == "" && a.number == 0 && a.data == nil && !a.joined {
		w.Array(3)
		w.Uint(uint64(a.code))
		w.Uint(uint64(a.life))
		w.Uint(uint64(a.run))
		return
	}
	w.Array(7)
	w.Uint(uint64(a.code))
	w.Uint(uint64(a.life))
	w.Uint(uint64(a.run))
	w.Bool(a.joined)
	w.Text(a.text)
	w.Int(a.number)
	w.Bytes(a.data)
}

func decodeAnswers(data []byte) ([]answer, error) {
	r, err := scanned(data)
	if err != nil {
		return nil, err
	}
	answers := make([]answer, arrayOf(r, data, 4))
	for i := range answers {
		a := &answers[i]
		fields := r.Array()
		if fields != 3 && fields != 7 {
			r.Fail("answer of %d fields", fields)
			break
		}
		a.code, a.life, a.run = answerCode(r.Uint()), events.Ref(r.Uint()), uint32(r.Uint())
		if fields == 7 {
			a.joined, a.text, a.number, a.data = r.Bool(), r.Text(), r.Int(), r.Bytes()
		}
		if int(a.code) >= answerCodeCount {
			r.Fail("answer code %d", a.code)
		}
	}
	return answers, r.Close()
}

// arrayOf reads the head of an array in data whose elements take at least each bytes: a slice of so many may be made.
func arrayOf(r *wire.Reader, data []byte, each int) int {
	n := r.Array()
	if n > len(data)/each {
		r.Fail("array of %d in %d bytes", n, len(data))
		return 0
	}
	return n
}

// fit adds the answer to others of the given size and returns their size then. One that would make them too large together, unless
// it is the first, is left out, to be asked for again; so is all that comes after it.
func (a *answer) fit(size int) int {
	n := answerBytes + len(a.text) + len(a.data)
	if size > 0 && size+n > maxReadBytes {
		*a = answer{code: answerTryAgain}
		return maxReadBytes + 1
	}
	return size + n
}

// fullStore says why nothing can be recorded, and the remedy.
const fullStore = "the store is full: compact, defragment and disarm the alarm"
