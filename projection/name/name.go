// Package name keeps texts that many tasks share, each once in memory.
package name

import "strings"

// Name is a text that many tasks share, each at the cost of a pointer; the zero Name is "". Names of one text need
// not be equal: compare their texts.
type Name struct{ text *string }

// Of returns the Name of a text.
func Of(text string) Name {
	if text != "" {
		return Name{&text}
	}
	return Name{}
}

// String returns the text.
func (n Name) String() string {
	if n == (Name{}) {
		return ""
	}
	return *n.text
}

// MarshalText is String.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// Table holds the Names that a shard gives out again. A table of the process that forgets what nobody uses, as
// package unique has it, would stop the owner at the end of every garbage collection: a weak pointer cannot be
// followed then.
type Table map[string]Name

// Of returns the Name of a text that may be part of something larger.
func (m Table) Of(text string) Name {
	if name, known := m[text]; known {
		return name
	}
	if len(m) == 1024 { // most are of nodes that have gone
		clear(m)
	}
	text = strings.Clone(text)
	m[text] = Of(text)
	return m[text]
}
