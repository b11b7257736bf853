package collections

import (
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"taskledger/events"
)

// maxNesting bounds how deep the parameters of a driver may lie in one another.
const maxNesting = 100

// entry is a key of a mapping.
type entry struct {
	key   string
	keyAt *place
	at    *place // of the value
	node  *yaml.Node
}

// entries returns the keys of a mapping, each once. Whatever else stands there is a problem; false = no mapping does.
func entries(f *findings, n *yaml.Node, at *place) ([]entry, bool) {
	if n.Kind != yaml.MappingNode || n.ShortTag() != "!!map" {
		f.problem(at, "%s, want a mapping", kindOf(n))
		return nil, false
	}
	all := make([]entry, 0, len(n.Content)/2)
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		keyAt := at.key(key.Value, key)
		switch line := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			f.problem(keyAt, "%s as a key, want a text", kindOf(key))
		case line > 0:
			f.problem(keyAt, "is there twice: the first one is in line %d", line)
		default:
			lines[key.Value] = key.Line
			all = append(all, entry{
				key:   key.Value,
				keyAt: keyAt,
				at:    at.key(key.Value, value),
				node:  value,
			})
		}
	}
	return all, true
}

// find returns the entry of a key.
func find(all []entry, key string) (entry, bool) {
	for _, e := range all {
		if e.key == key {
			return e, true
		}
	}
	return entry{}, false
}

// elements returns the elements of a list.
func elements(f *findings, n *yaml.Node, at *place) []*yaml.Node {
	if n.Kind != yaml.SequenceNode || n.ShortTag() != "!!seq" {
		f.problem(at, "%s, want a list", kindOf(n))
		return nil
	}
	return n.Content
}

// kindOf names a node for people.
func kindOf(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		return "an alias, which no file may have"
	}
	switch tag := n.ShortTag(); tag {
	case "!!map":
		return "a mapping"
	case "!!seq":
		return "a list"
	case "!!null":
		return "nothing"
	case "!!bool", "!!int", "!!float", "!!timestamp":
		return events.Head(n.Value, shownKey) + " without quotes"
	case "!!merge":
		return "a merge key, which no file may have,"
	case "!!str":
		return "the text " + strconv.Quote(events.Head(n.Value, shownKey))
	default:
		return "the tag " + strconv.Quote(events.Head(tag, shownKey))
	}
}

// text returns a text, and one without a zero byte, which no program takes.
func text(f *findings, n *yaml.Node, at *place) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		f.problem(at, "%s, want a text", kindOf(n))
		return "", false
	case strings.Contains(n.Value, "\x00"):
		f.problem(at, "holds a zero byte")
		return "", false
	}
	return n.Value, true
}

// free returns anything that JSON has.
func free(f *findings, n *yaml.Node, at *place, depth int) any {
	var v any
	switch tag := n.ShortTag(); {
	case depth == maxNesting:
		f.problem(at, "lies in more than %d others", maxNesting)
	case n.Kind == yaml.MappingNode:
		all := map[string]any{}
		keys, _ := entries(f, n, at)
		for _, e := range keys {
			all[e.key] = free(f, e.node, e.at, depth+1)
		}
		return all
	case n.Kind == yaml.SequenceNode:
		all := []any{}
		for i, element := range elements(f, n, at) {
			all = append(all, free(f, element, at.element(i, element), depth+1))
		}
		return all
	case n.Kind != yaml.ScalarNode:
		f.problem(at, "%s", kindOf(n))
	case tag == "!!str" || tag == "!!timestamp":
		return n.Value
	case tag == "!!null" || tag == "!!bool" || tag == "!!int" || tag == "!!float":
		if err := n.Decode(&v); err != nil {
			f.problem(at, "%s: %s is expected", kindOf(n), tag)
		} else if _, err := json.Marshal(v); err != nil {
			f.problem(at, "%s: JSON has no such number", kindOf(n))
			return nil
		}
	default:
		f.problem(at, "%s, want one of JSON", kindOf(n))
	}
	return v
}
