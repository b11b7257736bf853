package archtest_test

import (
	"strings"
	"testing"

	"taskledger/internal/archtest"
)

func loadTypesOf(t *testing.T, files map[string]string) (*archtest.Source, *archtest.Types) {
	t.Helper()
	s := loadTree(t, files)
	types, err := s.Types(exports(t))
	if err != nil {
		t.Fatal(err)
	}
	return s, types
}

func TestCircles_CatchesFilesThatUseEachOther(t *testing.T) {
	_, types := loadTypesOf(t, map[string]string{
		// a uses a method of c, c a field of b, b a function of a; d is used, and e uses.
		"p/a.go": "package p\nfunc a(t C) { t.m() }",
		"p/b.go": "package p\ntype B[T any] struct { field T }\nfunc b() { a(C{}); d() }",
		"p/c.go": "package p\ntype C struct{ b *B[int] }\nfunc (c C) m() { c.b.field++ }",
		"p/d.go": "package p\nfunc d() {}",
		"p/e.go": "package p\nfunc e() { b(); d() }",
		// Two circles of two, one behind the other.
		"q/a.go": "package q\nfunc a() { b() }",
		"q/b.go": "package q\nfunc b() { a(); c() }",
		"q/c.go": "package q\nfunc c() { d() }",
		"q/d.go": "package q\nfunc d() { c() }",
		// Tests and what other systems compile do not count, nor do others' packages.
		"r/a.go":             "package r\nimport \"m/s\"\nfunc a() { s.S() }",
		"r/a_test.go":        "package r\nfunc helper() { a() }",
		"r/a_windows.go":     "package r\nfunc a() { b() }",
		"r/b.go":             "package r\nfunc b() { a() }",
		"s/a.go":             "package s\nimport \"strings\"\nfunc S() string { return strings.ToUpper(\"s\") }",
		"s/testdata/bad.go":  "package nothing to parse",
		"s/ignored_plan9.go": "package other",
	})
	equal(t, types.Circles(archtest.Limits{"...": 2, "p": 2, "q": 3}),
		"p: 3 files use each other in a circle, at most 2: a.go b.go c.go",
		"q: needs no limit of its own: 2 is within 2",
	)
	equal(t, types.Circles(archtest.Limits{"...": 1, "p": 4, "q": 2}), "p: lower its limit from 4 to 3")
	equal(t, types.Circles(archtest.Limits{"...": 1, "p": 3, "q": 2}))
}

func TestTypes_ReportsCodeThatDoesNotCompile(t *testing.T) {
	for _, text := range []string{"package p\nvar a = b", "package p\nimport _ \"m/p\"", "package p\nimport _ \"m/q\""} {
		s := loadTree(t, map[string]string{"p/a.go": text})
		if _, err := s.Types(exports(t)); err == nil || !strings.Contains(err.Error(), "p/a.go") {
			t.Errorf("%q: %v, want an error that names the file", text, err)
		}
	}
}

func TestLiterals_CountsThoseWithTwoOfManyFieldsOnALine(t *testing.T) {
	_, types := loadTypesOf(t, map[string]string{
		"p/a.go": `package p
type S struct{ a, b, c int }
type list []int
var crowded = S{a: 1, b: 2, c: 3}
var positional = S{1, 2, 3}
var pointers = []*S{{
	a: 1, b: 2,
	c: 3,
}}
var few = S{a: 1, b: 2}
var spread = S{
	a: 1,
	b: 2,
	c: 3,
}
var table = []S{{1, 2, 3}}
var others = map[string]list{"a": {1, 2, 3}, "b": nil, "c": nil}`,
		"p/a_test.go": "package p\nvar test = S{a: 1, b: 2, c: 3}",
		"p/q/a.go":    "package q\nvar s = struct{ a, b, c int }{a: 1, b: 2, c: 3}",
		"r/a.go":      "package r\nvar s = struct{ a, b, c int }{a: 1, b: 2, c: 3}",
	})
	equal(t, types.Literals(2, 1, "p"),
		"p/a.go:4: literal of 3 fields", "p/a.go:5: literal of 3 fields", "p/a.go:6: literal of 3 fields", "p/q/a.go:2: ")
	equal(t, types.Literals(2, 4, "q"),
		"5 literals of more than 2 fields have two on a line, at most 4", "p/a.go:4: ", "p/a.go:5: ", "p/a.go:6: ", "p/q/a.go:2: ", "r/a.go:2: ")
	equal(t, types.Literals(2, 5))
	equal(t, types.Literals(2, 25))
	equal(t, types.Literals(2, 26), "5 literals of more than 2 fields have two on a line: lower the limit from 26 to 5")
}

func TestUnions_CatchesThemInFields(t *testing.T) {
	files := map[string]string{
		"port/a.go": `package port
type One interface { A() }
type Two interface { B() }
type Both interface { One; Two }
type Alias = Both`,
		"p/a.go": `package p
import (
	"io"
	"m/port"
)
type Config struct { Store port.Both }
type Good struct {
	one  port.One
	body io.ReadCloser
}
type bad struct {
	port.Both
	b    port.Alias
	many map[string][]*port.Both
	in   struct { both port.Both }
}
func f(both port.Both) {
	type local struct { both port.Both }
	_ = both
}`,
		"q/a.go": `package q
import "m/port"
type box[T any] struct { p *T }
type many []port.Both
type hidden struct {
	literal interface { port.Both }
	inside  box[port.Both]
	named   many
	makes   func() port.Both
	takes   func(...port.Both)
	keys    map[port.Both]bool
}
type of[T port.Both, U interface { port.One; comparable }] struct {
	t    T
	u    []U
	self *of[T, U]
}
type fine struct {
	one   func(map[port.One]port.Two)
	inner *hidden
	many  box[many2]
}
type many2 []port.One`,
		"p/a_test.go": "package p\nimport \"m/port\"\ntype fake struct { port.Both }",
	}
	_, types := loadTypesOf(t, files)
	equal(t, types.Unions("p.Config", "p.Good"),
		"p.Good: may have a union in a field, and has none",
		"p/a.go:12: a field of p.bad is the union port.Both of 2 methods",
		"p/a.go:13: a field of p.bad is the union port.Both of 2 methods",
		"p/a.go:14: a field of p.bad is the union port.Both of 2 methods",
		"p/a.go:15: a field of p.bad is the union port.Both of 2 methods",
		"p/a.go:18: a field of p.local is the union port.Both of 2 methods",
		"q/a.go:10: a field of q.hidden is the union port.Both of 2 methods",
		"q/a.go:11: a field of q.hidden is the union port.Both of 2 methods",
		"q/a.go:14: a field of q.of is the union port.Both of 2 methods",
		"q/a.go:15: a field of q.of is the union interface{...} of 1 methods",
		"q/a.go:16: a field of q.of is the union interface{...} of 1 methods",
		"q/a.go:16: a field of q.of is the union port.Both of 2 methods",
		"q/a.go:6: a field of q.hidden is the union interface{...} of 2 methods",
		"q/a.go:7: a field of q.hidden is the union port.Both of 2 methods",
		"q/a.go:8: a field of q.hidden is the union port.Both of 2 methods",
		"q/a.go:9: a field of q.hidden is the union port.Both of 2 methods",
	)
}

func TestSurface_CatchesHiddenTypesInWhatUsersMeet(t *testing.T) {
	_, types := loadTypesOf(t, map[string]string{
		"fold/a.go":     "package fold\ntype State struct{}\n",
		"fold/sub/a.go": "package sub\ntype Row struct{}\n",
		"folded/a.go":   "package folded\ntype Other struct{}\n",
		"p/a.go": `package p
import (
	"iter"
	"m/fold"
	"m/fold/sub"
	"m/folded"
)
type Fine struct {
	inner fold.State
	Other folded.Other
}
func (Fine) hidden(fold.State) {}
func own(fold.State) {}
type state = fold.State

var Seen map[string][]*fold.State
type Name = sub.Row
type Rows []sub.Row
func Each() iter.Seq2[sub.Row, error] { return nil }
type Asks interface { Ask(...fold.State) }
type Holds struct {
	Excused func(chan fold.State)
	inner
}
type inner struct { Shown struct{ State fold.State } }
func (*Holds) State() (state, error) { return state{}, nil }`,
	})
	equal(t, types.Surface("fold", []string{"p", "q"}, "p.Holds.Excused", "p.Fine.Other"),
		"p.Asks.Ask names fold.State",
		"p.Each names sub.Row",
		"p.Fine.Other: may name a type of fold, and names none",
		"p.Holds.Shown.State names fold.State",
		"p.Holds.State names fold.State",
		"p.Name names sub.Row",
		"p.Rows names sub.Row",
		"p.Seen names fold.State",
		"q: no such package",
	)
}
