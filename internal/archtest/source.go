// Package archtest holds the source to the architecture: which package may import which, which packages are pure,
// how wide an interface may be, how many fields a struct may have, how large circles of files, how literals and
// comments read, and which texts no tracked file may contain. Its tests apply the rules to the project. Every rule
// is a function of a file tree, so tests can also show that it finds violations.
//
// A rule returns its violations as sorted lines, each naming file, finding and, where there is one, the reason.
package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Source is the parsed Go code of a module.
type Source struct {
	module string // path
	fset   *token.FileSet
	files  []file
}

// file is one Go file; tests are files like others.
type file struct {
	path string // slash-separated, from the module's root
	dir  string // "." for the root
	test bool
	ast  *ast.File

	compiled bool // here: not for other systems alone
	lines    int
}

// Load parses every Go file of the module at the root of fsys, but none of testdata, hidden folders or nested modules.
func Load(fsys fs.FS) (*Source, error) {
	mod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, err
	}
	s := &Source{fset: token.NewFileSet()}
	for line := range strings.Lines(string(mod)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			s.module = strings.TrimSpace(name)
		}
	}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && foreign(fsys, name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		return s.add(fsys, name)
	})
	return s, err
}

// foreign reports whether a folder holds nothing of the module's own code.
func foreign(fsys fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	base := path.Base(dir)
	return err == nil || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func (s *Source) add(fsys fs.FS, name string) error {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	parsed, err := parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	here := build.Default
	here.JoinPath = path.Join
	here.OpenFile = func(name string) (io.ReadCloser, error) { return fsys.Open(name) }
	compiled, err := here.MatchFile(path.Dir(name), path.Base(name))
	if err != nil {
		return fmt.Errorf("read constraints of %s: %w", name, err)
	}
	s.files = append(s.files, file{
		path: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), ast: parsed,
		compiled: compiled, lines: bytes.Count(text, []byte("\n")),
	})
	return nil
}

// at names the place of a node.
func (s *Source) at(n ast.Node) string {
	p := s.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// imported returns the path of an import.
func imported(spec *ast.ImportSpec) string {
	name, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
	return name
}

// within reports whether name is the path prefix or lies below it.
func within(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && (rest == "" || rest[0] == '/')
}
