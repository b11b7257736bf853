package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
)

// serving are the names of net/http with which requests are answered.
var serving = []string{"FileServer", "FileServerFS", "Handle", "HandleFunc", "HandlerFunc", "ListenAndServe", "ListenAndServeTLS", "NewServeMux", "Serve", "ServeMux",
	"ServeTLS", "Server"}

// Handlers returns where HTTP requests are answered in other packages than the given ones, tests aside. A given one
// that answers none is a violation, too.
func (s *Source) Handlers(packages ...string) (found []string) {
	used := map[string]bool{}
	for _, f := range s.files {
		if f.test {
			continue
		}
		local := ""
		for _, spec := range f.ast.Imports {
			if imported(spec) != "net/http" {
				continue
			}
			if local = "http"; spec.Name != nil {
				local = spec.Name.Name
			}
		}
		if local == "." {
			found = append(found, f.path+": dot import of net/http")
		}
		of := path.Dir(f.path)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains(serving, sel.Sel.Name) {
				return true
			}
			if is, ok := sel.X.(*ast.Ident); !ok || local == "" || is.Name != local {
				return true
			}
			if used[of] = true; !slices.Contains(packages, of) {
				found = append(found, fmt.Sprintf("%s: http.%s outside the table of routes", s.at(n), sel.Sel.Name))
			}
			return true
		})
	}
	for _, p := range packages {
		if !used[p] {
			found = append(found, p+": answers no request")
		}
	}
	slices.Sort(found)
	return found
}
