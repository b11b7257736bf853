package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"taskledger/internal/testkit"
)

// variable gives a program, in its environment, the name of the mutation that is on. None is, unless it is set.
const variable = "MUTATION_OF_TASKLEDGER"

// switchFile is laid into every package that has mutations.
const switchFile = "mutation_switch.go"

func switchText(pkg string) string {
	return fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar mutationOn = os.Getenv(%q)\n", pkg, variable)
}

// lay writes sources with every mutation, whichever are tried, to dir, and returns the path of the overlay. The go
// command's cache has what it has compiled of them once.
func lay(dir string) (laid string, err error) {
	texts, err := mergeAll(everything())
	if err != nil {
		return "", err
	}
	return testkit.LayOver(dir, texts)
}

// mergeAll returns the texts of files that hold all the mutations, by the path that each is to be laid over.
func mergeAll(all []mutation) (map[string]string, error) {
	files := map[string]*merged{}
	for number, m := range all {
		mutated, err := testkit.ApplyEdits(m.edits...)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		for file, text := range mutated {
			if files[file] == nil {
				if files[file], err = readMerged(file); err != nil {
					return nil, err
				}
			}
			if err := files[file].add(number, m.name, text); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", m.name, file, err)
			}
		}
	}
	texts := map[string]string{}
	for file, f := range files {
		texts[file] = f.result()
		texts[path.Join(path.Dir(file), switchFile)] = switchText(f.file.Name.Name)
	}
	return texts, nil
}

// merged is a source file with several mutations of it, each of which can be switched on. Of every function that a
// mutation alters there is the original, which begins with a switch, and for each mutation the altered one under a name
// of its own: within the original, a parameter may hide a name that the altered one needs.
type merged struct {
	source
	switches   map[string]string // by function
	newImports []string          // that mutations add
	added      []string          // declarations
}

// source is a parsed file.
type source struct {
	text  string
	file  *ast.File
	funcs map[string]*ast.FuncDecl // by receiver and name

	imports []string
	rest    []string // declarations that are neither functions nor imports
}

func readMerged(file string) (*merged, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s, err := parseSource(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &merged{source: s, switches: map[string]string{}}, nil
}

func parseSource(text string) (s source, err error) {
	if s.file, err = parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution); err != nil {
		return s, fmt.Errorf("parse: %w", err)
	}
	if base := int(s.file.FileStart); base != 1 {
		return s, fmt.Errorf("file begins at position %d", base)
	}
	s.text, s.funcs = text, map[string]*ast.FuncDecl{}
	for _, i := range s.file.Imports {
		s.imports = append(s.imports, s.of(i))
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			s.funcs[s.key(d)] = d
		case *ast.GenDecl:
			if d.Tok != token.IMPORT {
				s.rest = append(s.rest, s.of(d))
			}
		}
	}
	return s, nil
}

// of returns the text of a node.
func (s *source) of(n ast.Node) string { return s.text[n.Pos()-1 : n.End()-1] }

func (s *source) key(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return s.of(f.Recv.List[0].Type) + "." + f.Name.Name
}

// code returns a function without the comment before it.
func (s *source) code(f *ast.FuncDecl) string { return s.text[f.Type.Func-1 : f.End()-1] }

// add merges a mutation of the file, of which text is the whole. In the same order, the same mutations make the same
// text, which the go command's cache knows.
func (m *merged) add(number int, name, text string) error {
	s, err := parseSource(text)
	if err != nil {
		return err
	}
	for _, d := range m.rest {
		if !slices.Contains(s.rest, d) {
			return errors.New("a mutation is to alter nothing but functions")
		}
	}
	m.added = append(m.added, without(s.rest, m.rest)...)
	m.newImports = append(m.newImports, without(s.imports, slices.Concat(m.imports, m.newImports))...)
	altered := false
	for _, key := range slices.Sorted(maps.Keys(s.funcs)) {
		original, known := m.funcs[key]
		switch f := s.funcs[key]; {
		case !known:
			m.added = append(m.added, s.code(f))
		case m.code(original) != s.code(f):
			altered = true
			if err := m.alter(number, name, key, &s); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if !altered {
		return errors.New("no function is altered")
	}
	return nil
}

// alter adds the function of s that a mutation alters, and a switch to it.
func (m *merged) alter(number int, name, key string, s *source) error {
	f := s.funcs[key]
	own := fmt.Sprintf("%sMutation%d", f.Name.Name, number)
	from, to := f.Name.Pos()-f.Type.Func, f.Name.End()-f.Type.Func
	code := s.code(f)
	m.added = append(m.added, code[:from]+own+code[to:])
	call, err := callOf(m.funcs[key], own)
	if err != nil {
		return err
	}
	m.switches[key] += fmt.Sprintf("\nif mutationOn == %q { %s }\n", name, call)
	return nil
}

var errNoName = errors.New("a receiver or parameter without a name cannot be passed on")

// callOf returns the statements by which a function passes its call on to another one of the same signature.
func callOf(f *ast.FuncDecl, to string) (string, error) {
	var arguments []string
	for _, p := range f.Type.Params.List {
		if len(p.Names) == 0 {
			return "", errNoName
		}
		for _, n := range p.Names {
			argument := n.Name
			if argument == "_" {
				return "", errNoName
			}
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				argument += "..."
			}
			arguments = append(arguments, argument)
		}
	}
	if f.Recv != nil {
		if len(f.Recv.List[0].Names) == 0 {
			return "", errNoName
		}
		to = f.Recv.List[0].Names[0].Name + "." + to
	}
	call := to + "(" + strings.Join(arguments, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return", nil
	}
	return "return " + call, nil
}

// without returns what all has and others have not.
func without(all, others []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(others, s) })
}

// result returns the file with all its mutations.
func (m *merged) result() string {
	text := m.text
	byPlace := func(a, b string) int { return int(m.funcs[b].Body.Lbrace - m.funcs[a].Body.Lbrace) }
	for _, key := range slices.SortedFunc(maps.Keys(m.switches), byPlace) { // from the end on: places stay
		at := m.funcs[key].Body.Lbrace
		text = text[:at] + m.switches[key] + text[at:]
	}
	at := m.file.Name.End() - 1
	imports := ""
	for _, name := range m.newImports {
		imports += "\nimport " + name + "\n"
	}
	return text[:at] + imports + text[at:] + "\n" + strings.Join(m.added, "\n\n") + "\n"
}
