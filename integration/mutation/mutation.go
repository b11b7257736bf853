package main

import (
	"strings"

	"taskledger/internal/testkit"
)

// mutation breaks one rule of the design. A rule whose mutation no test notices is not kept.
type mutation struct {
	name  string
	test  string // is there to notice it
	edits edits
}

// function returns the name of the test without that of its part.
func (m *mutation) function() string {
	name, _, _ := strings.Cut(m.test, "/")
	return name
}

// edits break sources. Each replaces a text that occurs once, after those before it.
type edits []testkit.Edit

// in returns the edit that replaces a text of a file.
func in(file, old, text string) edits { return edits{{File: file, Old: old, New: text}} }

// and returns the edits with another one of the file.
func (e edits) and(old, text string) edits {
	return append(e, testkit.Edit{File: e[0].File, Old: old, New: text})
}
