package shape

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"taskledger/api/problem"
	"taskledger/store"
)

// Decode decodes one JSON value of the type of the shape. It returns a *problem.Problem or a *store.InvalidError.
// Memory for errors is bounded; the type bounds the memory of the value.
func (s *Shape) Decode(data []byte, into any) error {
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		return problem.New(problem.Malformed, "body: it begins with a byte order mark: leave it out")
	}
	if err := check(data, s); err != nil {
		return err
	}
	if !utf8.Valid(data) {
		return problem.New(problem.Malformed, "the body is no UTF-8")
	}
	if err := json.Unmarshal(data, into); err != nil {
		return Refused("", data, into, err)
	}
	return nil
}

// Refused returns the error of a value that encoding/json refuses, with its place. The value is at a place in the body,
// such as tasks[3]; "" stands for the body itself.
func Refused(place string, data []byte, into any, err error) error {
	if p, ok := errors.AsType[*problem.Problem](err); ok {
		return p
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return problem.New(problem.Malformed, "body: it is empty")
	}
	at := place
	if len(data) <= maxPlaced {
		if where, why := misplaced(data, reflect.TypeOf(into).Elem()); why != nil {
			at, err = within(place, where), why
		}
	}
	if invalid, ok := errors.AsType[*store.InvalidError](err); ok {
		return &store.InvalidError{Field: cmp.Or(at, invalid.Field), Problem: invalid.Problem}
	}
	p := problem.New(problem.Malformed, "%s: %s", cmp.Or(at, "body"), strings.TrimPrefix(err.Error(), "json: "))
	p.Field = at
	if is, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		p.Field = cmp.Or(at, is.Field, "body")
		p.Detail = fmt.Sprintf("%s: want %s, got the JSON type %s", p.Field, jsonOf(is.Type), is.Value)
	}
	return p
}

// jsonOf names the JSON type of a Go type.
func jsonOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text"
	case reflect.Slice, reflect.Array:
		return "an array"
	default:
		return "an object"
	}
}
