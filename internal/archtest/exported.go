package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// Exported returns every package that exports more names than its limit. Methods and fields do not count.
func (s *Source) Exported(most Limits) []string {
	exported := s.exported()
	sizes := map[string]int{}
	for dir, names := range exported {
		sizes[dir] = len(names)
	}
	return most.broken(sizes, func(dir string, size, limit int) string {
		return fmt.Sprintf("%s: exports %d names, at most %d: %s", dir, size, limit, strings.Join(exported[dir], " "))
	})
}

// exported returns the exported names of each package, sorted, each once.
func (s *Source) exported() map[string][]string {
	sets := map[string]map[string]bool{}
	for _, f := range s.files {
		if f.test {
			continue
		}
		if sets[f.dir] == nil {
			sets[f.dir] = map[string]bool{}
		}
		for _, d := range f.ast.Decls {
			for _, name := range declaredNames(d) {
				if name.IsExported() {
					sets[f.dir][name.Name] = true
				}
			}
		}
	}
	names := map[string][]string{}
	for dir, set := range sets {
		names[dir] = slices.Sorted(maps.Keys(set))
	}
	return names
}

// declaredNames returns the names of the package that a declaration declares.
func declaredNames(d ast.Decl) (names []*ast.Ident) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name)
			case *ast.ValueSpec:
				names = append(names, spec.Names...)
			}
		}
	}
	return names
}
