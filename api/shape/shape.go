// Package shape decodes JSON of requests strictly: names are written as the Go type has them, each is there once, and
// an error names the place of the wrong value.
package shape

import (
	"bytes"
	"cmp"
	"encoding"
	stored "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskledger/api/problem"
	"taskledger/store"
)

// maxDepth bounds how deep a body may be nested.
const maxDepth = 64

// raw decodes JSON that is kept as it is written: names in it are data, and one may stand there more than once.
var raw = json.UnmarshalFromFunc(func(d *jsontext.Decoder, into *stored.RawMessage) error {
	return json.UnmarshalDecode(d, into, jsontext.AllowDuplicateNames(true), json.WithUnmarshalers(nil))
})

// Decode decodes one JSON value. It returns a *problem.Problem or a *store.InvalidError. Memory for errors is bounded;
// the type bounds the memory of the value.
func Decode(data []byte, into any) error {
	switch {
	case bytes.HasPrefix(data, []byte("\ufeff")):
		return problem.New(problem.Malformed, "body: it begins with a byte order mark: leave it out")
	case tooDeep(data):
		return problem.New(problem.Malformed, "body: nested deeper than %d levels", maxDepth)
	case !utf8.Valid(data):
		return problem.New(problem.Malformed, "the body is no UTF-8")
	case len(bytes.TrimSpace(data)) == 0:
		return problem.New(problem.Malformed, "body: it is empty")
	}
	root, takers := reflect.TypeOf(into).Elem(), raw
	if bytes.Contains(data, []byte("null")) {
		takers = json.JoinUnmarshalers(raw, nulls(root))
	}
	half := jsontext.AllowInvalidUTF8(true) // half of a surrogate pair becomes U+FFFD
	err := json.Unmarshal(data, into, json.RejectUnknownMembers(true), half, json.WithUnmarshalers(takers))
	if err != nil {
		return refusal(root, err)
	}
	return nil
}

// tooDeep reports whether JSON is nested deeper than maxDepth, before any decoder recurses into it.
func tooDeep(data []byte) bool {
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch is := data[i]; {
		case text && is == '\\':
			i++
		case is == '"':
			text = !text
		case text:
		case is == '{' || is == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case is == '}' || is == ']':
			depth--
		}
	}
	return false
}

// nulls refuses null in place of a value that must be there, which the decoder takes for the zero value.
func nulls(root reflect.Type) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(d *jsontext.Decoder, into any) error {
		t, depth := reflect.TypeOf(into).Elem(), d.StackDepth()
		if d.PeekKind() != 'n' || depth == 0 || mayBeNull(t) {
			return errors.ErrUnsupported // the decoder goes on
		}
		if in, _ := d.StackIndex(depth); in == '{' {
			if _, f := find(root, d.StackPointer()); strings.Contains(f.Tag.Get("json"), ",omit") {
				return errors.ErrUnsupported // null is as good as no field
			}
		}
		return cmp.Or(d.SkipValue(), fmt.Errorf("want %s, got the JSON type null", jsonOf(t)))
	})
}

var decodesText = reflect.TypeFor[encoding.TextUnmarshaler]()

func mayBeNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	}
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(decodesText)
}

// refusal returns the error of a value that the decoder refuses, with its place.
func refusal(root reflect.Type, err error) error {
	if p, is := errors.AsType[*problem.Problem](err); is {
		return p
	}
	if wrong, is := errors.AsType[*jsontext.SyntacticError](err); is && wrong.Err == jsontext.ErrDuplicateName {
		at, _ := find(root, wrong.JSONPointer)
		return malformed(at, "it is there more than once")
	}
	wrong, is := errors.AsType[*json.SemanticError](err)
	if !is {
		return problem.New(problem.Malformed, "body: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	at, _ := find(root, wrong.JSONPointer)
	if invalid, is := errors.AsType[*store.InvalidError](err); is {
		return &store.InvalidError{Field: cmp.Or(at, invalid.Field), Problem: invalid.Problem}
	}
	if no, is := errors.AsType[*time.ParseError](err); is {
		why := fmt.Sprintf("%.40q: want a time such as 2026-11-21T12:00:00Z", no.Value)
		return &store.InvalidError{Field: at, Problem: why}
	}
	switch kind := wrong.JSONKind; {
	case wrong.Err == json.ErrUnknownName:
		return malformed(at, unknown(wrong.GoType, wrong.JSONPointer.LastToken()))
	case wrong.Err != nil && wrong.JSONValue == nil && (kind == 0 || kind == '"'): // its type says why
		return malformed(at, wrong.Err.Error())
	case kind == '0' && wrong.JSONValue != nil:
		return malformed(at, "want "+jsonOf(wrong.GoType)+", got the JSON type number "+Clip(string(wrong.JSONValue)))
	default:
		return malformed(at, "want "+jsonOf(wrong.GoType)+", got the JSON type "+kinds.Replace(kind.String()))
	}
}

// kinds names the kinds of values whose own names are characters.
var kinds = strings.NewReplacer("{", "object", "[", "array", "true", "bool", "false", "bool")

func malformed(at, why string) *problem.Problem {
	p := problem.New(problem.Malformed, "%s: %s", cmp.Or(at, "body"), why)
	p.Field = cmp.Or(at, "body")
	return p
}

func unknown(t reflect.Type, name string) string {
	for known := range fieldsOf(t) {
		if strings.EqualFold(known, name) {
			return "the field is named " + known
		}
	}
	return "the request has no such field"
}

// find returns a place in a value of a type as errors name it, such as adds[3].timespec, and the field that is there.
func find(t reflect.Type, at jsontext.Pointer) (place string, is reflect.StructField) {
	for token := range at.Tokens() {
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		is = reflect.StructField{}
		switch {
		case t != nil && t.Kind() == reflect.Slice:
			place, t = place+"["+token+"]", t.Elem()
			continue
		case t != nil && t.Kind() == reflect.Map:
			t = t.Elem()
		case t != nil && t.Kind() == reflect.Struct:
			is = fieldsOf(t)[token]
			t = is.Type
		}
		if place != "" {
			place += "."
		}
		place += Clip(token)
	}
	return place, is
}

// fields caches what fieldsOf returns: a body may hold a null for each dozen of its bytes, and each needs its field.
var fields sync.Map

// fieldsOf returns the fields of a struct by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.StructField {
	if cached, is := fields.Load(t); is {
		return cached.(map[string]reflect.StructField)
	}
	all := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && !f.Anonymous {
			name = f.Name
		}
		if f.IsExported() && name != "" && name != "-" {
			all[name] = f
		}
	}
	fields.Store(t, all)
	return all
}

// jsonOf names the JSON type of a Go type.
func jsonOf(t reflect.Type) string {
	switch k := t.Kind(); {
	case reflect.PointerTo(t).Implements(decodesText) || k == reflect.String:
		return "a text"
	case k == reflect.Bool:
		return "true or false"
	case k >= reflect.Int && k <= reflect.Uintptr:
		return "a whole number"
	case k == reflect.Float64:
		return "a number"
	case k == reflect.Slice || k == reflect.Array:
		return "an array"
	}
	return "an object"
}

// Clip makes a name of a request fit for an error.
func Clip(text string) string {
	if len(text) > 64 || !utf8.ValidString(text) {
		return strings.ToValidUTF8(text[:min(len(text), 64)], "?")
	}
	return text
}
