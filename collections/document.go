package collections

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"taskledger/events"
)

// MaxBytes bounds a file.
const MaxBytes = 4 << 20

// document reads the one document of a file; nil = there is none, which is a problem.
func document(f *findings, text []byte) *yaml.Node {
	start := &place{line: 1, column: 1}
	if len(text) > MaxBytes {
		f.problem(start, "%d bytes exceed the limit of %d", len(text), MaxBytes)
		return nil
	}
	if at, line, column := foreign(text); at >= 0 {
		f.problem(&place{line: line, column: column}, "byte 0x%02X: want UTF-8 without control characters", text[at])
		return nil
	}
	in := yaml.NewDecoder(bytes.NewReader(text))
	var root, next yaml.Node
	err := in.Decode(&root)
	if errors.Is(err, io.EOF) {
		f.problem(start.missing("sources"), "missing: the file is empty")
		return nil
	}
	if err == nil {
		err = in.Decode(&next)
	}
	switch {
	case errors.Is(err, io.EOF) && len(root.Content) == 1:
		return root.Content[0]
	case err == nil:
		f.problem(&place{line: next.Line, column: next.Column}, "a second document: want one")
	default:
		syntax(f, err)
	}
	return nil
}

// foreign returns the first byte that YAML does not have, -1 if there is none, and where it is.
func foreign(text []byte) (at, line, column int) {
	line, column = 1, 1
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0xFFFE, r == 0xFFFF:
			return at, line, column
		case r == '\n':
			line, column = line+1, 0
		}
		at, column = at+size, column+1
	}
	return -1, 0, 0
}

// syntax tells an error of the library.
func syntax(f *findings, err error) {
	const shown = 200
	at, text := &place{}, err.Error()
	if load, is := errors.AsType[*yaml.LoadError](err); is {
		at.line, at.column, text = load.Mark.Line, load.Mark.Column, load.Message
	}
	f.problem(at, "%s", events.Head(strings.TrimPrefix(text, "yaml: "), shown))
}
