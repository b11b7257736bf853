package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"

	"taskledger/integration/bugs"
)

// variable names, in the environment of a test, the mutation that is on: its index. None is, unless it is set.
const variable = "MUTATION_OF_TASKLEDGER"

// switchFile is laid into every package that has mutations.
const switchFile = "mutation_switch.go"

func switchText(pkg string) string {
	return fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar mutationOn = os.Getenv(%q)\n", pkg, variable)
}

// merged is a source file with several mutations of it, each of which can be switched on. Of every function that a
// mutation alters there is the original, which begins with a switch, and for each mutation the altered one under a name of
// its own.
type merged struct {
	source
	switches map[string]string // by function, what its body begins with
	imports  map[string]bool   // that mutations add
	added    []string          // functions
}

// source is a parsed file.
type source struct {
	text  string
	file  *ast.File
	funcs map[string]*ast.FuncDecl // by receiver and name
	rest  string                   // what is outside of functions and imports
}

func merge(text string) (*merged, error) {
	s, err := parse(text)
	return &merged{s, map[string]string{}, map[string]bool{}, nil}, err
}

func parse(text string) (s source, err error) {
	set := token.NewFileSet()
	if s.file, err = parser.ParseFile(set, "", text, parser.SkipObjectResolution); err != nil {
		return s, fmt.Errorf("parse: %w", err)
	}
	if base := int(s.file.FileStart); base != 1 {
		return s, fmt.Errorf("file begins at position %d", base)
	}
	s.text, s.funcs = text, map[string]*ast.FuncDecl{}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			s.funcs[s.key(d)] = d
			continue
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
		}
		s.rest += s.of(d)
	}
	return s, nil
}

// of is the text of a node.
func (s *source) of(n ast.Node) string { return s.text[n.Pos()-1 : n.End()-1] }

func (s *source) key(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return s.of(f.Recv.List[0].Type) + "." + f.Name.Name
}

// code is a function without the comment before it.
func (s *source) code(f *ast.FuncDecl) string { return s.text[f.Type.Func-1 : f.End()-1] }

// add merges a mutation of the file, of which text is the whole.
func (m *merged) add(number int, text string) error {
	s, err := parse(text)
	if err != nil {
		return err
	}
	if s.rest != m.rest {
		return fmt.Errorf("a mutation is to alter nothing but functions")
	}
	for _, i := range s.file.Imports {
		if !slices.ContainsFunc(m.file.Imports, func(known *ast.ImportSpec) bool { return known.Path.Value == i.Path.Value }) {
			m.imports[i.Path.Value] = true
		}
	}
	altered := false
	for key, f := range s.funcs {
		original, known := m.funcs[key]
		switch {
		case !known:
			m.added = append(m.added, s.code(f))
		case m.code(original) != s.code(f):
			altered = true
			if err := m.alter(number, key, original, &s, f); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if !altered {
		return fmt.Errorf("no function is altered")
	}
	return nil
}

// alter adds the altered function f of s, and a switch to it.
func (m *merged) alter(number int, key string, original *ast.FuncDecl, s *source, f *ast.FuncDecl) error {
	name := fmt.Sprintf("%sMutation%d", f.Name.Name, number)
	from, to := f.Name.Pos()-f.Type.Func, f.Name.End()-f.Type.Func
	code := s.code(f)
	m.added = append(m.added, code[:from]+name+code[to:])
	call, err := callOf(original, name)
	if err != nil {
		return err
	}
	m.switches[key] += fmt.Sprintf("\nif mutationOn == \"%d\" { %s }\n", number, call)
	return nil
}

// callOf returns the statements by which a function passes its call on to another one of the same signature.
func callOf(f *ast.FuncDecl, to string) (string, error) {
	var arguments []string
	for _, p := range f.Type.Params.List {
		if len(p.Names) == 0 {
			return "", fmt.Errorf("a parameter without a name cannot be passed on")
		}
		for _, n := range p.Names {
			if n.Name == "_" {
				return "", fmt.Errorf("a parameter without a name cannot be passed on")
			}
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				arguments = append(arguments, n.Name+"...")
				continue
			}
			arguments = append(arguments, n.Name)
		}
	}
	if f.Recv != nil {
		if len(f.Recv.List[0].Names) == 0 {
			return "", fmt.Errorf("a receiver without a name cannot be passed on")
		}
		to = f.Recv.List[0].Names[0].Name + "." + to
	}
	call := to + "(" + strings.Join(arguments, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return", nil
	}
	return "return " + call, nil
}

// result is the file with all its mutations.
func (m *merged) result() string {
	text := m.text
	byPlace := func(a, b string) int { return int(m.funcs[b].Body.Lbrace - m.funcs[a].Body.Lbrace) }
	for _, key := range slices.SortedFunc(maps.Keys(m.switches), byPlace) { // from the end on: places stay
		at := m.funcs[key].Body.Lbrace
		text = text[:at] + m.switches[key] + text[at:]
	}
	at := m.file.Name.End() - 1
	var imports strings.Builder
	for name := range m.imports {
		fmt.Fprintf(&imports, "\nimport %s\n", name)
	}
	return text[:at] + imports.String() + text[at:] + "\n" + strings.Join(m.added, "\n\n") + "\n"
}

// mergeAll returns the texts of files that hold all the mutations, numbered by index, by the path that each is to be laid over.
func mergeAll(all []bugs.Bug, read func(file string) (string, error)) (map[string]string, error) {
	files := map[string]*merged{}
	texts := map[string]string{}
	for i := range all {
		m := &all[i]
		text, err := read(m.File)
		if err != nil {
			return nil, err
		}
		if files[m.File] == nil {
			if files[m.File], err = merge(text); err != nil {
				return nil, fmt.Errorf("%s: %w", m.File, err)
			}
		}
		mutated, err := m.Apply(text)
		if err == nil {
			err = files[m.File].add(i, mutated)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", m.Name, m.File, err)
		}
	}
	for file, f := range files {
		texts[file] = f.result()
		texts[path.Join(path.Dir(file), switchFile)] = switchText(f.file.Name.Name)
	}
	return texts, nil
}
