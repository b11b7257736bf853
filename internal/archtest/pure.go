package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
)

// pureLibrary lists the packages of the standard library that a pure file may import. Except for the functions of
// impure, nothing in them blocks, keeps time, draws random numbers or reaches outside the process.
var pureLibrary = []string{
	"bytes", "cmp", "container/heap", "container/list", "crypto/sha256", "encoding", "encoding/base32", "encoding/base64", "encoding/binary",
	"encoding/hex", "encoding/json", "errors", "fmt", "hash", "hash/crc32", "hash/fnv", "iter", "maps", "math",
	"math/bits", "slices", "sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
}

// impure lists what pure files must not name of the packages they may import.
var impure = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker", "Local", "LoadLocation"},
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// Pure returns what is not pure in the files that match one of the patterns of path.Match, tests aside: goroutines,
// channels, clocks, prints, and imports that could do I/O, block or draw random numbers. A pattern that no file matches
// is a violation, too.
func (s *Source) Pure(patterns ...string) []string {
	var found []string
	used := map[string]bool{}
	for _, f := range s.files {
		if f.test {
			continue
		}
		pure := false
		for _, p := range patterns {
			if ok, _ := path.Match(p, f.path); ok {
				used[p], pure = true, true
			}
		}
		if pure {
			found = append(found, s.impurities(&f)...)
		}
	}
	for _, p := range patterns {
		if !used[p] {
			found = append(found, p+": no file matches")
		}
	}
	slices.Sort(found)
	return found
}

func (s *Source) impurities(f *file) []string {
	var found []string
	report := func(n ast.Node, what string) {
		found = append(found, fmt.Sprintf("%s: %s in a pure file", s.at(n), what))
	}
	packages := map[string]string{} // by the name that the file calls them
	for _, spec := range f.ast.Imports {
		name := imported(spec)
		if standard(name, s.module) && !slices.Contains(pureLibrary, name) {
			report(spec, "import of "+name)
		}
		local := path.Base(name)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." && impure[name] != nil {
			report(spec, "dot import of "+name)
		}
		packages[local] = name
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n, "go statement")
		case *ast.SelectStmt:
			report(n, "select statement")
		case *ast.SendStmt:
			report(n, "send on a channel")
		case *ast.ChanType:
			report(n, "channel")
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				report(n, "print")
			}
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && slices.Contains(impure[packages[id.Name]], n.Sel.Name) {
				report(n, packages[id.Name]+"."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}
