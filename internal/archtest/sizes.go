package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// Limits are numbers by package. That of "..." is for all that have none of their own; without it, those have none.
type Limits map[string]int

// broken returns what tell says of each package that is above its limit, and every limit of its own that a package does not
// need.
func (l Limits) broken(sizes map[string]int, tell func(dir string, size, limit int) string) []string {
	var found []string
	general, all := l["..."]
	for dir, size := range sizes {
		limit, own := l[dir]
		if !own {
			limit = general
		}
		if (own || all) && size > limit {
			found = append(found, tell(dir, size, limit))
		}
	}
	for dir := range l {
		size, known := sizes[dir]
		switch {
		case dir == "...":
		case !known:
			found = append(found, fmt.Sprintf("%s: has a limit and does not exist", dir))
		case all && size <= general:
			found = append(found, fmt.Sprintf("%s: needs no limit of its own: %d is within %d", dir, size, general))
		}
	}
	slices.Sort(found)
	return found
}

// lines counts the lines of the files of each package that count.
func (s *Source) lines(count func(*file) bool) map[string]int {
	lines := map[string]int{}
	for i := range s.files {
		if f := &s.files[i]; count(f) {
			lines[f.dir] += f.lines
		}
	}
	return lines
}

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
