// Package message encodes messages that are too few to be worth code of their own: what operators and readers ask, what
// nodes tell each other now and then, and the answers. A message is a plain struct; msgpack/v5 encodes it as an array of
// its fields in their order, integers in their shortest form. What is sent for every task, and what is stored, has the
// bounded writer and reader of package wire.
//
// The fields of a message are exported and of the kinds bool, int64, uint64, string, []byte, slice and struct, nothing
// else: the decoder of msgpack/v5 truncates narrower integers and starts goroutines for pointers. The elements of a slice
// are no slices, []byte aside. Fields carry no tags, and none of their types encodes itself.
//
// A decoder takes exactly what Encode makes of the same type. msgpack/v5 alone would take nil for a number, an empty array
// for a struct and a map for one, a string for bytes, and would allocate whatever number of elements is declared.
//
// A type changes by adding fields at its end. Who has another number of fields refuses the message as malformed: a release
// that must understand an earlier one sends a message of another type.
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

// Encode returns the encoded form of a struct, or of the one that v points to. It panics for what is no message.
func Encode(v any) []byte {
	value := reflect.Indirect(reflect.ValueOf(v))
	shapeOf(value.Type())
	var b bytes.Buffer
	e := msgpack.GetEncoder()
	defer msgpack.PutEncoder(e)
	e.Reset(&b)
	e.UseArrayEncodedStructs(true)
	e.UseCompactInts(true)
	if err := e.EncodeValue(value); err != nil {
		panic(fmt.Sprintf("message %s: %v", value.Type(), err)) // a buffer takes everything, and a message has nothing that cannot be encoded
	}
	return b.Bytes()
}

// Decode reads data, of at most limit bytes, into the struct that v points to, and calls its Check if it is a Checker. What
// was in it is gone, and it shares no memory with data. Errors wrap wire.ErrMalformed; the struct is zero then. Decode
// allocates at most 64 bytes for a byte of data. It panics if v does not point to a message.
func Decode(data []byte, limit int, v any) error {
	value := reflect.ValueOf(v).Elem()
	value.SetZero()
	err := decode(data, limit, value)
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

func decode(data []byte, limit int, value reflect.Value) error {
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
	if err := s.check(d); err != nil {
		return fmt.Errorf("before byte %d: %w", len(data)-in.Len(), err)
	}
	in.Reset(data)
	d.Reset(in)
	return d.DecodeValue(value)
}

// check reads the next value and returns an error unless it is what Encode makes of this shape, or an integer in a longer
// form. Every element of it is there then, which bounds what decoding it allocates.
func (s *shape) check(d *msgpack.Decoder) error {
	if s.parts != nil {
		return s.checkParts(d)
	}
	code, err := d.PeekCode()
	switch {
	case err != nil:
		return err
	case !s.takes(code):
		return fmt.Errorf("%s expected, found 0x%02x", s.t, code)
	case s.t.Kind() == reflect.Int64 && code == msgpcode.Uint64:
		v, err := d.DecodeUint64()
		if err == nil && v > math.MaxInt64 {
			err = fmt.Errorf("number %d out of range", v)
		}
		return err
	}
	return d.Skip()
}

// checkParts is check for a struct and for a slice of other things than bytes.
func (s *shape) checkParts(d *msgpack.Decoder) error {
	n, err := d.DecodeArrayLen() // negative for nil
	switch {
	case err != nil:
		return err
	case s.t.Kind() == reflect.Slice:
		for ; n > 0 && err == nil; n-- {
			err = s.parts[0].check(d)
		}
		return err
	case n != len(s.parts):
		return fmt.Errorf("array of %d values expected for %s, found %d", len(s.parts), s.t, n)
	}
	for _, field := range s.parts {
		if err := field.check(d); err != nil {
			return err
		}
	}
	return nil
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
