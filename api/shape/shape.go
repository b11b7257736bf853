// Package shape decodes JSON bodies of requests strictly: names are those of the fields of the Go type, each is there
// once, and an error names the place of the wrong value.
//
// encoding/json takes a name in any case, and the last of two, and names no place in an array. This package looks at a
// body first, and again once it was refused.
package shape

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Shape holds the names that a type allows in a JSON value; nil allows any.
type Shape struct {
	kind   reflect.Kind // Struct: an object of fields. Map: an object of any names. Slice: an array
	fields []field
	of     *Shape // the shape of the elements of an array, or of the values of an object with any names
	holds  string // names the kind that these must have; "" = they may be null
}

type field struct {
	name string
	of   reflect.Type
	is   *Shape
	want string // names the kind that it must have; "" = it may be null
}

var (
	decodesJSON = reflect.TypeFor[json.Unmarshaler]()
	decodesText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// Of returns the shape of a type, as encoding/json has it. A body that decodes itself has the names of its fields; a
// value in it that does has any.
func Of(t reflect.Type) *Shape {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := &Shape{kind: t.Kind()}
	switch t.Kind() {
	case reflect.Struct:
		s.fields = fieldsOf(t)
	case reflect.Map:
		s.of, s.holds = shapeWithin(t.Elem()), notNull(t.Elem())
	case reflect.Slice:
		if s.of, s.holds = shapeWithin(t.Elem()), notNull(t.Elem()); s.of == nil && s.holds == "" {
			return nil
		}
	default:
		return nil
	}
	return s
}

func shapeWithin(t reflect.Type) *Shape {
	if decodesItself(t) {
		return nil
	}
	return Of(t)
}

// notNull names the kind that a value of the type must have; "" = it may be null. encoding/json takes null for every
// type, and leaves the value as it is.
func notNull(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return ""
	}
	if decodesItself(t) {
		return ""
	}
	return jsonOf(t)
}

func decodesItself(t reflect.Type) bool {
	decodes := func(t reflect.Type) bool { return t.Implements(decodesJSON) || t.Implements(decodesText) }
	return decodes(t) || t.Kind() != reflect.Pointer && decodes(reflect.PointerTo(t))
}

func fieldsOf(t reflect.Type) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		want := notNull(f.Type)
		if strings.Contains(options, "omit") { // null is as good as no field
			want = ""
		}
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			all = append(all, fieldsOf(f.Type)...)
		case tag == "-" || !f.IsExported():
		case name == "":
			all = append(all, field{f.Name, f.Type, shapeWithin(f.Type), want})
		default:
			all = append(all, field{name, f.Type, shapeWithin(f.Type), want})
		}
	}
	return all
}

// Clip makes a name of a request fit for an error.
func Clip(text string) string {
	if len(text) > 64 || !utf8.ValidString(text) {
		return strings.ToValidUTF8(text[:min(len(text), 64)], "?")
	}
	return text
}
