package behaviors

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"taskledger/events"
	"taskledger/store"
	"taskledger/task"
)

// encode returns v as JSON text, nil for None. It returns *store.InvalidError or *task.LimitError, naming field.
func encode[T any](field string, v T) ([]byte, error) {
	if isNone[T]() {
		return nil, nil
	}
	raw, err := safely("encoding the ", field, func() ([]byte, error) { return json.Marshal(v) })
	if err != nil {
		return nil, &store.InvalidError{Field: field, Problem: err.Error()}
	}
	return raw, checkSize(field, raw)
}

func checkSize(field string, raw []byte) error {
	if len(raw) > events.MaxPayloadBytes {
		return &task.LimitError{Field: field, Limit: events.MaxPayloadBytes, Got: int64(len(raw))}
	}
	return nil
}

// validator checks parameters before they are accepted; their type may implement it.
type validator interface{ Validate() error }

// decodeParams returns *store.InvalidError or *task.LimitError when raw is no valid P.
func decodeParams[P any](raw []byte) (P, error) {
	p, err := decode[P]("parameters", raw)
	if err == nil {
		err = validate(p)
	}
	return p, err
}

// validate refuses parameters that find themselves wrong.
func validate[P any](p P) error {
	v, ok := any(p).(validator)
	if !ok {
		v, ok = any(&p).(validator)
	}
	if ok {
		if err := v.Validate(); err != nil {
			return &store.InvalidError{Field: "parameters", Problem: err.Error()}
		}
	}
	return nil
}

// decode reads JSON text into a T. Only None can be made of no text: anything else would pass off a missing value as
// zero.
func decode[T any](field string, raw []byte) (v T, err error) {
	if err := checkSize(field, raw); err != nil {
		return v, err
	}
	if len(raw) == 0 {
		if !isNone[T]() {
			err = &store.InvalidError{Field: field, Problem: "none, want " + form[T]()}
		}
		return v, err
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, &store.InvalidError{Field: field, Problem: mismatch[T](err)}
	}
	return v, nil
}

// onlyKnown refuses fields that a T does not have, of JSON text that can be decoded as a T.
func onlyKnown[T any](raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(new(T)); err != nil {
		return &store.InvalidError{Field: "parameters", Problem: strings.TrimPrefix(err.Error(), "json: ")}
	}
	return nil
}

// notNull refuses the JSON text null for a T that has no such value: decoding would leave it at zero without a word.
func notNull[T any](raw []byte) error {
	if string(bytes.TrimSpace(raw)) != "null" || isNone[T]() {
		return nil
	}
	t := reflect.TypeFor[T]()
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return nil
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil
	}
	return &store.InvalidError{Field: "parameters", Problem: "null, want " + form[T]()}
}

func isNone[T any]() bool {
	var v T
	_, none := any(v).(None)
	return none
}

// maxForm bounds the bytes of the JSON text of a zero value that messages show.
const maxForm = 100

// word returns the JSON name for values of a type.
func word(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "a text"
	case reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()):
		return "another value"
	}
	switch k := t.Kind(); {
	case k >= reflect.Int && k <= reflect.Uintptr:
		return "a whole number"
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	case k == reflect.Bool:
		return "true or false"
	case k == reflect.String || k == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "a text"
	case k == reflect.Slice || k == reflect.Array:
		return "a list"
	case k == reflect.Struct || k == reflect.Map:
		return "an object"
	}
	return "another value"
}

// form describes a type in an error: by what JSON calls it and, if it is an object, by its zero value as JSON text.
func form[T any]() string {
	name := word(reflect.TypeFor[T]())
	var zero T
	raw, err := safely("encoding ", name, func() ([]byte, error) { return json.Marshal(zero) })
	if err != nil || raw[0] != '{' || len(raw) > maxForm {
		return name
	}
	return name + ", such as " + string(raw)
}

// mismatch says where and how JSON text does not fit.
func mismatch[T any](err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("byte %d: %s", syntax.Offset, syntax)
	}
	if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if mismatch.Field == "" && mismatch.Type == reflect.TypeFor[T]() {
			return fmt.Sprintf("byte %d: is %s, want %s", mismatch.Offset, mismatch.Value, form[T]())
		}
		where := fmt.Sprintf("byte %d", mismatch.Offset)
		if mismatch.Field != "" {
			where = fmt.Sprintf("field %q at byte %d", mismatch.Field, mismatch.Offset)
		}
		return fmt.Sprintf("%s: is %s, want %s", where, mismatch.Value, word(mismatch.Type))
	}
	return err.Error()
}
