// Package message encodes messages that are too few to be worth code of their own: what operators and readers ask,
// what nodes tell each other now and then, and the answers. A message is a plain struct; msgpack/v5 encodes it as
// an array of its fields in their order, integers in their shortest form. What is sent for every task, and what is
// stored, has the bounded writer and reader of package wire.
//
// The fields of a message are exported and of the kinds bool, int64, uint64, string, []byte, slice and struct,
// nothing else: the decoder of msgpack/v5 truncates narrower integers and starts goroutines for pointers. The
// elements of a slice are no slices, []byte aside. Fields carry no tags, and none of their types encodes itself.
//
// A decoder takes exactly what Encode makes of the same type. msgpack/v5 alone would take nil for a number, an
// empty array for a struct and a map for one, a string for bytes, heads that are longer than they need be, and
// would allocate whatever number of elements is declared. A slice has no limit of elements by itself: each of them
// takes at least a byte, so the limit of a message's bytes bounds their number. A message caps what its meaning
// bounds, such as the tasks of a page, in its Check, by a named limit; so does every message whose elements cost
// more once they are read than their bytes suggest. Check is called before anything is made of the elements.
//
// A type changes by adding fields at its end, its tail, while programs with and without them work side by side.
// What asks for something is read by Decode, which refuses a tail that it does not know: what is half understood
// must not be done. What tells something is read by Read, which passes over it, at any depth: what it does know is
// true without. Fields that were not in the first release of a type are its Optional ones; who does not send them
// means their zero values. The types of fields and elements do not change.
package message

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"taskledger/internal/wire"
)

// Checker is a message some of whose values its type allows and its meaning does not.
type Checker interface {
	// Check returns what is wrong, nil for nothing.
	Check() error
}

// Optional is a message whose last fields earlier releases do not send.
type Optional interface {
	// Optional returns how many they are.
	Optional() int
}

// Encode returns the encoded form of a struct, or of the one that v points to. Of the optional fields the last ones
// that are zero are left out: a program that does not know them reads the rest. It panics for what is no message.
func Encode(v any) []byte {
	value := reflect.Indirect(reflect.ValueOf(v))
	shapeOf(value.Type())
	var b bytes.Buffer
	e := msgpack.GetEncoder()
	defer msgpack.PutEncoder(e)
	e.Reset(&b)
	e.UseArrayEncodedStructs(true)
	e.UseCompactInts(true)
	if err := encode(e, value, value.NumField()-silent(v, value)); err != nil {
		panic(fmt.Sprintf("message %s: %v", value.Type(), err)) // a buffer takes everything, and a message has nothing that cannot be encoded
	}
	return b.Bytes()
}

// silent returns how many of the optional fields, from the last one back, are zero.
func silent(v any, value reflect.Value) (n int) {
	o, some := v.(Optional)
	for some && n < o.Optional() && value.Field(value.NumField()-1-n).IsZero() {
		n++
	}
	return n
}

// encode writes the first fields of a struct.
func encode(e *msgpack.Encoder, value reflect.Value, fields int) error {
	if fields == value.NumField() {
		return e.EncodeValue(value)
	}
	if err := e.EncodeArrayLen(fields); err != nil {
		return err
	}
	for i := range fields {
		if err := e.EncodeValue(value.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// Read is Decode of a message that may have tails, at any depth, which are passed over.
func Read(data []byte, limit int, v any) error {
	return wire.Told(data, func(data []byte) error { return read(data, limit, v, true) })
}

// Decode reads data, of at most limit bytes, into the struct that v points to, and calls its Check if it is a
// Checker. What was in it is gone, and it shares no memory with data. Errors wrap wire.ErrMalformed; the struct is
// zero then. Decode allocates at most 64 bytes for a byte of data. It panics if v does not point to a message.
func Decode(data []byte, limit int, v any) error { return read(data, limit, v, false) }

func read(data []byte, limit int, v any, tail bool) error {
	value := reflect.ValueOf(v).Elem()
	value.SetZero()
	optional := 0
	if o, some := v.(Optional); some {
		optional = o.Optional()
	}
	err := decode(data, limit, value, optional, tail)
	if c, checks := v.(Checker); checks && err == nil {
		err = c.Check()
	}
	if err == nil {
		return nil
	}
	value.SetZero()
	if !errors.Is(err, wire.ErrMalformed) {
		err = fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	return fmt.Errorf("%s: %w", value.Type().Name(), err)
}

func decode(data []byte, limit int, value reflect.Value, optional int, tail bool) error {
	s := shapeOf(value.Type())
	if len(data) > limit {
		return fmt.Errorf("%d bytes exceed the limit of %d", len(data), limit)
	}
	if err := wire.Scan(data); err != nil {
		return err
	}
	d := msgpack.GetDecoder()
	defer msgpack.PutDecoder(d)
	in := bytes.NewReader(data)
	d.Reset(in)
	c := checker{d, in, data}
	known, err := c.checkMessage(s, optional, tail)
	if err != nil {
		return fmt.Errorf("before byte %d: %w", len(data)-in.Len(), err)
	}
	in.Reset(data)
	d.Reset(in)
	if _, err := d.DecodeArrayLen(); err != nil {
		return err
	}
	for i := range known {
		if err := d.DecodeValue(value.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

// checker reads a message that wire.Scan has found to be whole.
type checker struct {
	d    *msgpack.Decoder
	in   *bytes.Reader // what d reads
	data []byte        // all that was in it
}

// checkMessage is check for the message itself, whose last fields may be missing as far as they are optional, and
// which may have a tail. It returns how many of the fields are there.
func (c *checker) checkMessage(s *shape, optional int, tail bool) (known int, err error) {
	if !shortest(c.data) {
		return 0, fmt.Errorf("the head 0x%02x is longer than it need be", c.data[0])
	}
	n, err := c.d.DecodeArrayLen() // negative for nil
	switch {
	case err != nil:
		return 0, err
	case n < len(s.parts)-optional:
		return 0, fmt.Errorf("array of %d values expected for %s, found %d", len(s.parts), s.t, n)
	case n > len(s.parts) && !tail:
		return 0, fmt.Errorf("%s: %w", s.t, wire.TailAt(c.data, 0, len(s.parts), n))
	}
	known = min(n, len(s.parts))
	for _, field := range s.parts[:known] {
		if err := c.check(field); err != nil {
			return 0, err
		}
	}
	return known, nil
}

// check reads the next value and returns an error unless it is what Encode makes of this shape. Every element of it
// is there then, which bounds what decoding it allocates.
func (c *checker) check(s *shape) error {
	code, err := c.d.PeekCode()
	switch {
	case err != nil:
		return err
	case !shortest(c.data[len(c.data)-c.in.Len():]):
		return fmt.Errorf("the head 0x%02x is longer than it need be", code)
	case s.parts != nil:
		return c.checkParts(s)
	case !s.takes(code):
		return fmt.Errorf("%s expected, found 0x%02x", s.t, code)
	case s.t.Kind() == reflect.Int64 && code == msgpcode.Uint64:
		v, err := c.d.DecodeUint64()
		if err == nil && v > math.MaxInt64 {
			err = fmt.Errorf("number %d out of range", v)
		}
		return err
	}
	return c.d.Skip()
}

// checkParts is check for a struct and for a slice of other things than bytes.
func (c *checker) checkParts(s *shape) error {
	at := len(c.data) - c.in.Len()
	n, err := c.d.DecodeArrayLen() // negative for nil
	switch {
	case err != nil:
		return err
	case s.t.Kind() == reflect.Slice:
		for ; n > 0 && err == nil; n-- {
			err = c.check(s.parts[0])
		}
		return err
	case n > len(s.parts):
		return fmt.Errorf("%s: %w", s.t, wire.TailAt(c.data, at, len(s.parts), n))
	case n < len(s.parts):
		return fmt.Errorf("array of %d values expected for %s, found %d", len(s.parts), s.t, n)
	}
	for _, field := range s.parts {
		if err := c.check(field); err != nil {
			return err
		}
	}
	return nil
}

// shortest reports whether the number, string, bytes or array at the start of b, all of which is there, begins with
// the shortest head that msgpack has for it. Other values do.
func shortest(b []byte) bool {
	width := 0         // of the number behind the code, in bytes
	least := uint64(0) // that does not fit into the code itself
	switch code := b[0]; {
	case code >= msgpcode.Int8 && code <= msgpcode.Int64:
		width = 1 << (code - msgpcode.Int8)
		v := int64(bigEndian(b[1:1+width])<<(64-8*width)) >> (64 - 8*width)
		if width == 1 {
			return v < -1<<5
		}
		return v < -1<<(4*width-1)
	case code >= msgpcode.Uint8 && code <= msgpcode.Uint64:
		width, least = 1<<(code-msgpcode.Uint8), 1<<7
	case code >= msgpcode.Str8 && code <= msgpcode.Str32:
		width, least = 1<<(code-msgpcode.Str8), 1<<5
	case code >= msgpcode.Bin8 && code <= msgpcode.Bin32:
		width = 1 << (code - msgpcode.Bin8)
	case code == msgpcode.Array16: // there is no head of 8 bits
		return bigEndian(b[1:3]) >= 1<<4
	case code == msgpcode.Array32:
		width = 4
	default:
		return true
	}
	if width > 1 {
		least = 1 << (4 * width) // what half the bytes cannot hold
	}
	return bigEndian(b[1:1+width]) >= least
}

func bigEndian(b []byte) (v uint64) {
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	return v
}

// takes reports whether a value without parts begins with a code.
func (s *shape) takes(code byte) bool {
	switch s.t.Kind() {
	case reflect.Bool:
		return code == msgpcode.False || code == msgpcode.True
	case reflect.String:
		return msgpcode.IsString(code)
	case reflect.Int64:
		return msgpcode.IsFixedNum(code) || code >= msgpcode.Uint8 && code <= msgpcode.Int64
	case reflect.Uint64:
		return code <= msgpcode.PosFixedNumHigh || code >= msgpcode.Uint8 && code <= msgpcode.Uint64
	}
	return code == msgpcode.Nil || msgpcode.IsBin(code) // []byte
}
