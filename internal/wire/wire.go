package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Writer appends msgpack values to B. The zero value is ready.
type Writer struct{ B []byte }

// Array starts an array of n values, which must follow.
func (w *Writer) Array(n int) {
	switch {
	case n < 16:
		w.B = append(w.B, 0x90|byte(n))
	case n <= math.MaxUint16:
		w.B = append(w.B, 0xdc, byte(n>>8), byte(n))
	default:
		w.B = binary.BigEndian.AppendUint32(append(w.B, 0xdd), uint32(n))
	}
}

// Uint writes v in its shortest form.
func (w *Writer) Uint(v uint64) {
	switch {
	case v < 0x80:
		w.B = append(w.B, byte(v))
	case v <= math.MaxUint8:
		w.B = append(w.B, 0xcc, byte(v))
	case v <= math.MaxUint16:
		w.B = append(w.B, 0xcd, byte(v>>8), byte(v))
	case v <= math.MaxUint32:
		w.B = binary.BigEndian.AppendUint32(append(w.B, 0xce), uint32(v))
	default:
		w.B = binary.BigEndian.AppendUint64(append(w.B, 0xcf), v)
	}
}

// Int writes v as Uint does, or when negative in one byte down to -32 and in nine below.
func (w *Writer) Int(v int64) {
	switch {
	case v >= 0:
		w.Uint(uint64(v))
	case v >= -32:
		w.B = append(w.B, byte(v))
	default:
		w.B = binary.BigEndian.AppendUint64(append(w.B, 0xd3), uint64(v))
	}
}

// Bool writes v.
func (w *Writer) Bool(v bool) {
	if v {
		w.B = append(w.B, 0xc3)
	} else {
		w.B = append(w.B, 0xc2)
	}
}

// Text writes v as a string.
func (w *Writer) Text(v string) {
	switch n := len(v); {
	case n < 32:
		w.B = append(w.B, 0xa0|byte(n))
	case n <= math.MaxUint8:
		w.B = append(w.B, 0xd9, byte(n))
	case n <= math.MaxUint16:
		w.B = append(w.B, 0xda, byte(n>>8), byte(n))
	default:
		w.B = binary.BigEndian.AppendUint32(append(w.B, 0xdb), uint32(n))
	}
	w.B = append(w.B, v...)
}

// Bytes writes v as a binary string, nil as nil.
func (w *Writer) Bytes(v []byte) {
	if v == nil {
		w.B = append(w.B, 0xc0)
		return
	}
	w.BytesHead(len(v))
	w.B = append(w.B, v...)
}

// BytesHead starts a binary string of n bytes, which the caller appends to B.
func (w *Writer) BytesHead(n int) {
	switch {
	case n <= math.MaxUint8:
		w.B = append(w.B, 0xc4, byte(n))
	case n <= math.MaxUint16:
		w.B = append(w.B, 0xc5, byte(n>>8), byte(n))
	default:
		w.B = binary.BigEndian.AppendUint32(append(w.B, 0xc6), uint32(n))
	}
}

// Reader reads what Writer wrote. After the first error every method returns zero values, so that a caller checks Err
// or Close once, after its last read.
type Reader struct {
	b     []byte
	err   error
	name  string // the last one that Name returned
	whole []byte // what b was at first
	array int    // where the latest array begins in it
}

// NewReader reads b, which must stay unchanged while results of View are in use.
func NewReader(b []byte) *Reader { return &Reader{b: b, whole: b} }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Close returns the first error, and an error when bytes are left.
func (r *Reader) Close() error {
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes left over", len(r.b))
	}
	return r.err
}

// Fail makes the reader fail, for callers that find a value out of its range.
func (r *Reader) Fail(format string, args ...any) { r.fail(format, args...) }

// FailBy makes the reader fail by an error of a part that was read apart.
func (r *Reader) FailBy(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *Reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
	r.b = nil
}

// Tail makes the reader fail at the latest array, which has more values than its caller knows: the error wraps
// ErrTail, too.
func (r *Reader) Tail(found, known int) {
	if r.err == nil {
		r.err = TailAt(r.whole, r.array, known, found)
	}
	r.b = nil
}

func (r *Reader) take(n uint64, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.b)) {
		r.fail("%s of %d bytes, %d left", what, n, len(r.b))
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *Reader) code(what string) byte {
	if b := r.take(1, what); b != nil {
		return b[0]
	}
	return 0xc1 // never used by msgpack
}

func (r *Reader) number(width int, what string) uint64 { return bigEndian(r.take(uint64(width), what)) }

// Array reads the head of an array and returns its length, at most the bytes left.
func (r *Reader) Array() int {
	var n uint64
	r.array = len(r.whole) - len(r.b)
	switch c := r.code("array"); {
	case c&0xf0 == 0x90:
		n = uint64(c & 0x0f)
	case c == 0xdc:
		n = r.number(2, "array")
	case c == 0xdd:
		n = r.number(4, "array")
	default:
		r.fail("array expected, found 0x%02x", c)
	}
	if n > uint64(len(r.b)) {
		r.fail("array of %d values in %d bytes", n, len(r.b))
		return 0
	}
	return int(n)
}

// ArrayOf reads the head of an array that must have exactly n values. More are a tail.
func (r *Reader) ArrayOf(n int) {
	switch got := r.Array(); {
	case r.err == nil && got > n:
		r.Tail(got, n)
	case r.err == nil && got < n:
		r.fail("array of %d values expected, found %d", n, got)
	}
}

// Uint reads a non-negative integer.
func (r *Reader) Uint() uint64 {
	switch c := r.code("number"); {
	case c < 0x80:
		return uint64(c)
	case c >= 0xcc && c <= 0xcf:
		return r.number(1<<(c-0xcc), "number")
	default:
		r.fail("non-negative number expected, found 0x%02x", c)
		return 0
	}
}

// Int reads an integer. Unsigned values above the largest int64 are errors.
func (r *Reader) Int() int64 {
	switch c := r.code("number"); {
	case c < 0x80 || c >= 0xe0:
		return int64(int8(c))
	case c >= 0xcc && c <= 0xcf:
		v := r.number(1<<(c-0xcc), "number")
		if v > math.MaxInt64 {
			r.fail("number %d out of range", v)
			return 0
		}
		return int64(v)
	case c == 0xd3:
		return int64(r.number(8, "number"))
	default:
		r.fail("number expected, found 0x%02x", c)
		return 0
	}
}

// Bool reads a boolean.
func (r *Reader) Bool() bool {
	c := r.code("boolean")
	if c != 0xc2 && c != 0xc3 {
		r.fail("boolean expected, found 0x%02x", c)
	}
	return c == 0xc3
}

// Text reads a string.
func (r *Reader) Text() string { return string(r.TextView()) }

// Name is Text of what is likely to be the same as the Name read before: it then returns that string.
func (r *Reader) Name() string {
	if v := r.TextView(); string(v) != r.name {
		r.name = string(v)
	}
	return r.name
}

// TextView is Text without a copy; it aliases the message.
func (r *Reader) TextView() []byte {
	switch c := r.code("string"); {
	case c&0xe0 == 0xa0:
		return r.take(uint64(c&0x1f), "string")
	case c >= 0xd9 && c <= 0xdb:
		return r.take(r.number(1<<(c-0xd9), "string"), "string")
	default:
		r.fail("string expected, found 0x%02x", c)
		return nil
	}
}

// View reads a binary string or nil; the result aliases the message.
func (r *Reader) View() []byte {
	switch c := r.code("bytes"); {
	case c == 0xc0:
		return nil
	case c >= 0xc4 && c <= 0xc6:
		return r.take(r.number(1<<(c-0xc4), "bytes"), "bytes")
	default:
		r.fail("bytes expected, found 0x%02x", c)
		return nil
	}
}

// Bytes reads a binary string or nil into memory of its own.
func (r *Reader) Bytes() []byte {
	v := r.View()
	if v == nil {
		return nil
	}
	return append(make([]byte, 0, len(v)), v...)
}

// ArrayFrom reads the head of an array that must have at least n values, and returns how many more it has.
func (r *Reader) ArrayFrom(n int) (more int) {
	got := r.Array()
	if r.err == nil && got < n {
		r.fail("array of at least %d values expected, found %d", n, got)
	}
	return max(got-n, 0)
}

// Raw reads a value of any kind and returns its bytes, which are the message's.
func (r *Reader) Raw() []byte {
	before := r.b
	r.Skip(1)
	if r.err != nil {
		return nil
	}
	n := len(before) - len(r.b)
	return before[:n:n]
}

// Skip reads n values of any kind and leaves them unread.
func (r *Reader) Skip(n int) {
	for open := uint64(max(n, 0)); open > 0 && r.err == nil; open-- {
		if len(r.b) == 0 {
			r.fail("%d values are missing", open)
			return
		}
		head, skip, children, err := measure(r.b)
		if err != nil {
			r.fail("%v", err)
			return
		}
		r.take(uint64(head), "head")
		r.take(skip, "value")
		open += children
	}
}

// NextNil reports whether the next value is nil, without reading it.
func (r *Reader) NextNil() bool { return len(r.b) > 0 && r.b[0] == 0xc0 }

// NextBool reports whether the next value is a boolean, without reading it.
func (r *Reader) NextBool() bool { return len(r.b) > 0 && (r.b[0] == 0xc2 || r.b[0] == 0xc3) }

// NextBytes reports whether the next value is a binary string, without reading it.
func (r *Reader) NextBytes() bool { return len(r.b) > 0 && r.b[0] >= 0xc4 && r.b[0] <= 0xc6 }

// More reports whether anything is left to read.
func (r *Reader) More() bool { return r.err == nil && len(r.b) > 0 }
