// Package fieldtext holds the sentences by which the OpenAPI document describes schemas and their fields.
package fieldtext

import (
	_ "embed"
	"strings"
)

//go:embed texts.txt
var file string

// shared is the schema whose fields describe those of all schemas.
const shared = "*"

// Texts holds sentences by the name of a schema, or of a schema and a field with a dot between.
type Texts map[string]string

// Read returns the sentences of the file.
func Read() Texts {
	texts := Texts{}
	var schema string
	for line := range strings.SplitSeq(file, "\n") {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "" || name == "#":
		case strings.HasPrefix(line, " "):
			texts[schema+"."+name] = text
		default:
			schema = name
			texts[schema] = text
		}
	}
	return texts
}

// Field returns the sentence of a field of a schema, "" for none, and the name by which it stands in the file.
func (t Texts) Field(schema, field string) (text, name string) {
	if name = schema + "." + field; t[name] == "" {
		name = shared + "." + field
	}
	return t[name], name
}
