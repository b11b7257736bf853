package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// Interfaces returns every interface outside tests that declares more than most methods itself. Embedded interfaces do
// not count: an adapter may satisfy several ports, and a union of them is no wider for those who use one.
func (s *Source) Interfaces(most int) []string {
	var found []string
	for _, f := range s.files {
		if f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if t, ok := n.(*ast.InterfaceType); ok {
				if methods := declared(t); methods > most {
					found = append(found, fmt.Sprintf("%s: interface of %d methods, at most %d", s.at(t), methods, most))
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return found
}

func declared(t *ast.InterfaceType) int {
	n := 0
	for _, field := range t.Methods.List {
		n += len(field.Names) // an embedded interface has no name
	}
	return n
}
