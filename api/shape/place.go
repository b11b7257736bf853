package shape

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"taskledger/store"
)

// maxPlaced is the size of the largest body in which misplaced looks: it takes several times the memory of the body.
const maxPlaced = 1 << 20

// misplaced returns the first value in a JSON value that its type does not take: where it is, such as adds[3].timespec,
// and why. It returns nil if it finds none.
func misplaced(data []byte, t reflect.Type) (at string, why error) {
	if why = json.Unmarshal(data, reflect.New(t).Interface()); why == nil {
		return "", nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var below error
	switch {
	case t == reflect.TypeFor[time.Time]():
		below = noTime(data)
	case decodesItself(t):
	case t.Kind() == reflect.Struct:
		at, below = misplacedField(data, t)
	case t.Kind() == reflect.Slice:
		at, below = misplacedElement(data, t)
	}
	return at, cmp.Or(below, why)
}

// noTime returns why a JSON value is no time.
func noTime(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	return &store.InvalidError{Problem: fmt.Sprintf("%.40q: want a time such as 2026-11-21T12:00:00Z", text)}
}

func misplacedField(data []byte, t reflect.Type) (at string, why error) {
	var values map[string]json.RawMessage
	if json.Unmarshal(data, &values) != nil {
		return "", nil
	}
	for _, f := range fieldsOf(t) {
		value, is := values[f.name]
		if !is {
			continue
		}
		if below, why := misplaced(value, f.of); why != nil {
			return within(f.name, below), why
		}
	}
	return "", nil
}

func misplacedElement(data []byte, t reflect.Type) (at string, why error) {
	var values []json.RawMessage
	if json.Unmarshal(data, &values) != nil {
		return "", nil
	}
	for i, value := range values {
		if below, why := misplaced(value, t.Elem()); why != nil {
			return within("["+strconv.Itoa(i)+"]", below), why
		}
	}
	return "", nil
}

// within joins two parts of a place.
func within(outer, inner string) string {
	if outer == "" || inner == "" || inner[0] == '[' {
		return outer + inner
	}
	return outer + "." + inner
}
