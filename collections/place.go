package collections

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"taskledger/events"
)

// place says where something stands in a file. Its field is put together when it is asked for.
type place struct {
	line, column int
	name         string // such as .timeout or [2]
	up           *place
}

// shownKey bounds the bytes of a key that a field shows.
const shownKey = 64

// key is the place of the value of a key.
func (p *place) key(key string, n *yaml.Node) *place {
	name := events.Head(key, shownKey)
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		name = strconv.Quote(name)
	}
	return &place{n.Line, n.Column, "." + name, p}
}

// element is the place of an element of a list.
func (p *place) element(i int, n *yaml.Node) *place {
	return &place{n.Line, n.Column, "[" + strconv.Itoa(i) + "]", p}
}

// missing is the place of a key that is not there.
func (p *place) missing(key string) *place { return &place{p.line, p.column, "." + key, p} }

func (p *place) field() string {
	text := ""
	for ; p != nil; p = p.up {
		text = p.name + text
	}
	return strings.TrimPrefix(text, ".")
}
