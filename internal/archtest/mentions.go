package archtest

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

var mention = regexp.MustCompile(`\b([a-z]\w*)\.([A-Z]\w*)`)

// Mentions returns every comment that names something as exported by a package of the module, as in store.Journal,
// which that package does not export: comments stay behind when declarations move. Packages below internal folders are
// left out.
func (s *Source) Mentions() []string {
	exported := s.exportedByName()
	var found []string
	for _, f := range s.files {
		for _, group := range f.ast.Comments {
			for _, line := range group.List {
				for _, m := range mention.FindAllStringSubmatch(line.Text, -1) {
					if names := exported[m[1]]; names != nil && !names[m[2]] {
						found = append(found, fmt.Sprintf("%s: package %s exports no %s", s.at(line), m[1], m[2]))
					}
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// exportedByName returns, by name of the package, what it exports: functions, types, values, methods and fields.
func (s *Source) exportedByName() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, f := range s.files {
		name := f.ast.Name.Name
		if f.test || name == "main" || strings.Contains("/"+f.dir+"/", "/internal/") {
			continue
		}
		if all[name] == nil {
			all[name] = map[string]bool{}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				all[name][n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				all[name][n.Name.Name] = true
			case *ast.ValueSpec:
				declare(all[name], n.Names)
			case *ast.Field:
				declare(all[name], n.Names)
			}
			return true
		})
	}
	return all
}

func declare(names map[string]bool, idents []*ast.Ident) {
	for _, ident := range idents {
		names[ident.Name] = true
	}
}
