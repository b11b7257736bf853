package wire

import (
	"errors"
	"fmt"
	"slices"
)

// maxTails bounds the tails that Told passes over: a message whose parts have grown by some values each has fewer.
const maxTails = 1 << 12

// tailError is at an array of more values than its reader knows.
type tailError struct {
	in           []byte
	at           int // where the array begins
	known, found int // values
}

func (e *tailError) Error() string {
	return fmt.Sprintf("%v: %v: array of %d values expected, found %d", ErrMalformed, ErrTail, e.known, e.found)
}

func (e *tailError) Unwrap() []error { return []error{ErrMalformed, ErrTail} }

// TailAt is the error of an array that begins in a message at some byte and has more values than are known. It
// wraps ErrTail.
func TailAt(in []byte, at, known, found int) error { return &tailError{in, at, known, found} }

// Told reads what tells something and may come from a later release: decode is called again without the tail that
// it has met, until it meets none, at any depth. data was scanned. What asks for something is not read so: what is
// half understood must not be done.
func Told(data []byte, decode func(data []byte) error) error {
	for range maxTails {
		err := decode(data)
		tail, ok := errors.AsType[*tailError](err)
		if !ok || len(tail.in) != len(data) || &tail.in[0] != &data[0] { // it is in a part that was read apart
			return err
		}
		if data = tail.cut(); data == nil {
			return err
		}
	}
	return fmt.Errorf("%w: more than %d tails", ErrMalformed, maxTails)
}

// cut returns a copy of the message without the tail.
func (e *tailError) cut() []byte {
	r := NewReader(e.in[e.at:])
	if n := r.Array(); n != e.found || e.known > n {
		return nil
	}
	head := len(e.in) - len(r.b)
	r.Skip(e.known)
	end := len(e.in) - len(r.b)
	r.Skip(e.found - e.known)
	if r.err != nil {
		return nil
	}
	w := Writer{B: slices.Clone(e.in[:e.at])}
	w.Array(e.known)
	w.B = append(w.B, e.in[head:end]...)
	return append(w.B, r.b...)
}
