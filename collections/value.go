package collections

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"taskledger/events"
)

// form says how a value is written.
type form uint8

const (
	inText     form = iota
	inTexts         // a list
	inEnv           // a mapping of names of variables to texts
	inNumber        // whole, in decimal
	inFlag          // true or false
	inTime          // RFC 3339, with or without quotes
	inFreeForm      // anything that JSON has
)

// value holds what a key says, as JSON.
type value struct {
	at   *place
	json json.RawMessage // nil = a problem, which was told
}

// valueOf reads a value.
func valueOf(f *findings, n *yaml.Node, at *place, as form) value {
	v, told := any(nil), len(f.problems)+f.more
	is := true
	switch as {
	case inText:
		v, is = text(f, n, at)
	case inTexts:
		v = textsOf(f, n, at)
	case inEnv:
		v = envOf(f, n, at)
	case inNumber:
		v, is = number(f, n, at)
	case inFlag:
		v, is = flag(f, n, at)
	case inTime:
		if v = n.Value; n.Kind != yaml.ScalarNode || n.ShortTag() != "!!timestamp" {
			v, is = text(f, n, at)
		}
	case inFreeForm:
		v = free(f, n, at, 0)
	}
	encoded, err := json.Marshal(v)
	switch {
	case !is || err != nil || told != len(f.problems)+f.more:
		return value{at: at}
	case len(encoded) > events.MaxScheduleParamBytes:
		f.problem(at, "%d bytes as JSON exceed the limit of %d", len(encoded), events.MaxScheduleParamBytes)
		return value{at: at}
	}
	return value{at, encoded}
}

func textsOf(f *findings, n *yaml.Node, at *place) []string {
	all := []string{}
	for i, element := range elements(f, n, at) {
		one, _ := text(f, element, at.element(i, element))
		all = append(all, one)
	}
	return all
}

// envOf holds the names of variables to the rules of behavior exec. It shows no values, which may be secrets.
func envOf(f *findings, n *yaml.Node, at *place) map[string]string {
	all := map[string]string{}
	keys, _ := entries(f, n, at)
	for _, e := range keys {
		switch {
		case e.key == "" || strings.ContainsAny(e.key, "=\x00"):
			f.problem(e.keyAt, "%q is no name of a variable", events.Head(e.key, shownKey))
		case e.key == "PATH":
			f.problem(e.keyAt, "cannot be given: it is the node's")
		}
		if e.node.Kind == yaml.ScalarNode && e.node.ShortTag() != "!!str" {
			f.problem(e.at, "no text: want it in quotes")
			continue
		}
		all[e.key], _ = text(f, e.node, e.at)
	}
	return all
}

func number(f *findings, n *yaml.Node, at *place) (int64, bool) {
	is, err := strconv.ParseInt(n.Value, 10, 64)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil {
		f.problem(at, "%s, want a whole number", kindOf(n))
		return 0, false
	}
	return is, true
}

func flag(f *findings, n *yaml.Node, at *place) (is, ok bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" || n.Decode(&is) != nil {
		f.problem(at, "%s, want true or false", kindOf(n))
		return false, false
	}
	return is, true
}
