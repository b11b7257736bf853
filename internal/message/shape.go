package message

import (
	"encoding"
	"fmt"
	"reflect"
	"sync"

	"github.com/vmihailenco/msgpack/v5"

	"taskledger/internal/wire"
)

// shape describes the encoded form of a type.
type shape struct {
	t     reflect.Type
	parts []*shape // the fields of a struct, or the element of a slice; nil for all others, []byte among them
}

// shapes holds those of the messages seen so far, by type.
var shapes sync.Map

// shapeOf returns the shape of a message and panics if the type is none.
func shapeOf(t reflect.Type) *shape {
	if s, known := shapes.Load(t); known {
		return s.(*shape)
	}
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("%s is no message: a message is a struct", t))
	}
	s, err := build(t, 0)
	if err != nil {
		panic(fmt.Sprintf("%s is no message: %v", t, err))
	}
	shapes.Store(t, s)
	return s
}

// selfEncoding are interfaces whose methods msgpack/v5 would call instead of looking at the value.
var selfEncoding = []reflect.Type{
	reflect.TypeFor[msgpack.CustomEncoder](), reflect.TypeFor[msgpack.CustomDecoder](),
	reflect.TypeFor[msgpack.Marshaler](), reflect.TypeFor[msgpack.Unmarshaler](),
	reflect.TypeFor[encoding.BinaryMarshaler](), reflect.TypeFor[encoding.BinaryUnmarshaler](),
	reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
}

func build(t reflect.Type, depth int) (*shape, error) {
	for _, own := range selfEncoding {
		if reflect.PointerTo(t).Implements(own) {
			return nil, fmt.Errorf("%s encodes itself, it is a %s", t, own)
		}
	}
	s := &shape{t: t}
	switch kind := t.Kind(); {
	case depth > wire.MaxDepth:
		return nil, fmt.Errorf("it nests deeper than %d", wire.MaxDepth)
	case kind == reflect.Bool, kind == reflect.String, kind == reflect.Int64, kind == reflect.Uint64:
		return s, nil
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return s, nil
	case kind == reflect.Slice:
		element, err := build(t.Elem(), depth+1)
		if err == nil && element.t.Kind() == reflect.Slice && element.parts != nil {
			return nil, fmt.Errorf("%s has slices in a slice", t) // an empty one is a byte, for which 72 are allocated
		}
		s.parts = []*shape{element}
		return s, err
	case kind != reflect.Struct || t.NumField() == 0:
		return nil, fmt.Errorf("%s is of no kind that a message has", t)
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() || f.Anonymous || f.Tag != "" {
			return nil, fmt.Errorf("field %s is unexported, embedded or has a tag", f.Name)
		}
		field, err := build(f.Type, depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
		s.parts = append(s.parts, field)
	}
	return s, nil
}
