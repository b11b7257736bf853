package collections

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxProblems bounds the problems, and the warnings, that are told of one file.
const MaxProblems = 100

// Problem says what is wrong, or surprising, at one place of a file.
type Problem struct {
	File         string
	Line, Column int    // from 1; columns count characters. 0 = unknown
	Field        string // such as sources.shop.collections[2].timeout; "" = the file
	Text         string
}

// String returns "FILE:LINE:COLUMN: FIELD: TEXT".
func (p Problem) String() string {
	text := p.Text
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, text)
}

// Warning is a Problem in spite of which a file is taken.
type Warning Problem

// String returns what Problem.String does.
func (w Warning) String() string { return Problem(w).String() }

// InvalidFileError reports all problems of a file, of which nothing was taken.
type InvalidFileError struct {
	Problems []Problem // in the order of the file, at most MaxProblems
	More     int       // how many others there are
}

// Error has a line for each problem.
func (e *InvalidFileError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d problems more", e.More))
	}
	return strings.Join(lines, "\n")
}

// findings collects what is to be told of a file. What is inherited by many is told once, where it stands.
type findings struct {
	file               string
	told               map[finding]bool
	problems, warnings []Problem
	more               int // problems beyond MaxProblems
}

// finding tells findings apart.
type finding struct {
	line, column int
	name         string
	warning      bool
}

// first reports whether something is told for the first time.
func (f *findings) first(at *place, warning bool) bool {
	key := finding{at.line, at.column, at.name, warning}
	if f.told[key] {
		return false
	}
	if f.told == nil {
		f.told = map[finding]bool{}
	}
	f.told[key] = true
	return true
}

func (f *findings) problem(at *place, format string, args ...any) {
	switch {
	case !f.first(at, false):
	case len(f.problems) == MaxProblems:
		f.more++
	default:
		f.problems = append(f.problems, f.at(at, format, args))
	}
}

// warn passes over warnings beyond MaxProblems.
func (f *findings) warn(at *place, text string) {
	if len(f.warnings) < MaxProblems && f.first(at, true) {
		f.warnings = append(f.warnings, f.at(at, "%s", []any{text}))
	}
}

func (f *findings) at(at *place, format string, args []any) Problem {
	return Problem{
		File:   f.file,
		Line:   at.line,
		Column: at.column,
		Field:  at.field(),
		Text:   fmt.Sprintf(format, args...),
	}
}

// warned returns the warnings in the order of the file.
func (f *findings) warned() []Warning {
	var all []Warning
	for _, p := range inOrder(f.warnings) {
		all = append(all, Warning(p))
	}
	return all
}

// err returns the problems, nil if there is none.
func (f *findings) err() error {
	if len(f.problems) == 0 {
		return nil
	}
	return &InvalidFileError{inOrder(f.problems), f.more}
}

func inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}
