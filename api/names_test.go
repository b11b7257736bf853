package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"taskledger/api"
	"taskledger/api/problem"
	"taskledger/api/shape"
)

// bodies are the types of requests.
var bodies = []any{&api.Submit{}, &api.Batch{}, &api.Change{}, &api.ChangeMatching{}, &api.PauseRequest{}, &api.Reason{}}

func TestDecode_RefusesNamesInAnotherCaseAndThoseThatComeTwice(t *testing.T) {
	for _, c := range []struct {
		into       any
		body, want string // the field that is named; "" = nothing is wrong
	}{
		{&api.Submit{}, `{"behavior":"noop","params":{"a":1,"A":2},"id":"a"}`, ""},
		{&api.Submit{}, `{"params":{"a":1,"a":2},"behavior":"\"behavior\":\\"}`, ""}, // names in parameters are data
		{&api.Submit{}, `{"params":[{"behavior":1},{"behavior":"behavior"}],"behavior":"noop"}`, ""},
		{&api.Submit{}, "{ \"behavior\" : \"noop\" ,\n\t\"id\" : \"behavior\" }", ""},
		{&api.Submit{}, `{"beh\u0061vior":"noop"}`, ""},
		{&api.Submit{}, `{"Behavior":"noop"}`, "Behavior"},
		{&api.Submit{}, `{"behavior":"noop","BEHAVIOR":"sleep"}`, "BEHAVIOR"},
		{&api.Submit{}, `{"behavior":"noop","\u0042ehavior":"sleep"}`, "Behavior"},
		{&api.Submit{}, `{"behavior":"noop","id":"a","behavior":"noop"}`, "behavior"},
		{&api.Submit{}, `{"behavior":"noop","beh\u0061vior":"noop"}`, "behavior"},
		{&api.Submit{}, `{"behavior":"noop","params":{"x":[{}]},"params":1}`, "params"},
		{&api.Submit{}, `{"behavior":"noop","delay_m\u017f":1}`, "delay_m\u017f"}, // a long s, whose capital letter is S
		{&api.Submit{}, `{"behavior":"noop","colour":1}`, "colour"},
		{&api.Batch{}, `{"tasks":[{"behavior":"noop"},{"behavior":"noop","params":[[{}]]}]}`, ""},
		{&api.Batch{}, `{"Tasks":[]}`, "Tasks"},
		{&api.Batch{}, `{"tasks":[],"tasks":[]}`, "tasks"},
		{&api.Batch{}, `{"tasks":[{"behavior":"noop","params":[1,{"a":[2,3]}]},{"behavior":"noop","Params":{}}]}`,
			"tasks[1].Params"},
		{&api.Batch{}, `{"tasks":[{"behavior":"noop"},{"behavior":"noop","id":"a","id":"b"}]}`, "tasks[1].id"},
		{&api.Batch{}, `{"tasks":[{"behavior":"noop","colour":1}]}`, "tasks[0].colour"},
		{&api.Change{}, `{"operation":"retry","ids":["a","b"]}`, ""},
		{&api.Change{}, `{"operation":"retry","ids":["a"],"Ids":["b"]}`, "Ids"},
		{&api.Change{}, `{"operation":"retry","ids":["a"],"operation":"delete"}`, "operation"},
		{&api.ChangeMatching{}, `{"operation":"retry","filter":{"status":"FAILURE","behavior":"noop"}}`, ""},
		{&api.ChangeMatching{}, `{"operation":"retry","filter":{"status":"FAILURE","status":"SUCCESS"}}`, "filter.status"},
		{&api.ChangeMatching{}, `{"operation":"retry","filter":{"status":"FAILURE","st\u0061tus":"SUCCESS"}}`,
			"filter.status"},
		{&api.ChangeMatching{}, `{"operation":"retry","filter":{"status":"FAILURE"},"filter":{}}`, "filter"},
		{&api.ChangeMatching{}, `{"operation":"retry","filter":{},"Dry_Run":true}`, "Dry_Run"},
		{&api.PauseRequest{}, `{"reason":"x","force":true}`, ""},
		{&api.PauseRequest{}, `{"reason":"x","Force":true}`, "Force"},
		{&api.PauseRequest{}, `{"reason":"x","reason":"y"}`, "reason"},
		{&api.Reason{}, `{"REASON":"x"}`, "REASON"},
	} {
		err := shape.Decode([]byte(c.body), c.into)
		p, is := errors.AsType[*problem.Problem](err)
		named := is && p.Type == problem.Malformed && p.Field == c.want && strings.HasPrefix(p.Detail, c.want+": ")
		if c.want == "" && err != nil || c.want != "" && !named {
			t.Errorf("%s: %#v, want the field %q", c.body, err, c.want)
		}
	}
}

// FuzzDecode holds what is taken to a slow look at every name.
func FuzzDecode(f *testing.F) {
	for i := range bodies {
		f.Add(i, []byte(`{"behavior":"noop","params":{"a":1,"a":"\\\""},"tasks":[{"behavior":"noop","id":"a"}],`+
			`"operation":"retry","filter":{"a":"b"},"ids":["a"],"reason":""}`))
		f.Add(i, []byte(`{"tasks":[{"behavior":"noop","params":[[{"tasks":1}]]},{"id":"a","id":"b"}]}`))
		f.Add(i, []byte(`{"operation":"retry","filter":{"a":"b","\u0061":"c"},"reason":"","force":true}`))
		f.Add(i, []byte(`]{"behavior":[}`))
		f.Add(i, []byte(`{"behavior":"\`))
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		body := reflect.TypeOf(bodies[uint(i)%uint(len(bodies))])
		into := reflect.New(body.Elem()).Interface()
		if shape.Decode(data, into) != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		if err := look(d, body); err != nil {
			t.Fatalf("%s is taken for %s: %v", data, body, err)
		}
	})
}

// look reads a value of a type from the decoder, nil = of any, and returns what is wrong with a name in it.
func look(d *json.Decoder, t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	open, err := d.Token()
	if err != nil {
		return err
	}
	switch open {
	case json.Delim('['):
		var elem reflect.Type
		if t != nil && t.Kind() == reflect.Slice && t != reflect.TypeFor[json.RawMessage]() {
			elem = t.Elem()
		}
		for d.More() {
			if err := look(d, elem); err != nil {
				return err
			}
		}
		_, err = d.Token()
	case json.Delim('{'):
		known := map[string]reflect.Type{}
		if t != nil && t.Kind() == reflect.Struct {
			for _, f := range reflect.VisibleFields(t) {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				known[name] = f.Type
			}
		}
		var names []string
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return err
			}
			its, is := known[name.(string)]
			if t != nil && (len(known) > 0 && !is || slices.Contains(names, name.(string))) {
				return fmt.Errorf("the name %q", name)
			}
			names = append(names, name.(string))
			if its == reflect.TypeFor[json.RawMessage]() {
				its = nil
			}
			if err := look(d, its); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}

// What a submit costs to be read, and a batch.
func BenchmarkDecode(b *testing.B) {
	one := `{"behavior":"http","params":{"url":"https://example.com/hook","method":"POST",` +
		`"headers":{"Content-Type":"text/plain"},"body":"hello"},"id":"orders/4711","priority":7}`
	for name, c := range map[string]struct {
		into any
		body string
	}{
		"small": {api.Submit{}, `{"behavior":"noop","params":{}}`},
		"usual": {api.Submit{}, one},
		"large": {api.Submit{}, `{"behavior":"noop","params":{"text":"` + strings.Repeat("x", 200<<10) + `"}}`},
		"batch": {api.Batch{}, `{"tasks":[` + strings.Repeat(one+",", 999) + one + `]}`},
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(c.body)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				into := reflect.New(reflect.TypeOf(c.into)).Interface()
				if err := shape.Decode(data, into); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
