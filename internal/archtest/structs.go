package archtest

import (
	"fmt"
	"go/ast"
	"slices"
)

// Structs returns every struct, tests included, that has more than most fields. An embedded type counts as one.
func (s *Source) Structs(most int) []string {
	var found []string
	for _, f := range s.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if t, ok := n.(*ast.StructType); ok {
				if fields := t.Fields.NumFields(); fields > most {
					found = append(found, fmt.Sprintf("%s: struct of %d fields, at most %d", s.at(t), fields, most))
				}
			}
			return true
		})
	}
	slices.Sort(found)
	return found
}
