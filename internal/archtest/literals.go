package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
)

// Literals counts the literals of structs, outside of tests, that give more than most fields and put two of them on one
// line. A row of a table, which names neither its type nor its fields, does not count. Above the limit, it returns
// those of the three packages with most of them. More than 20 below the limit, it asks for a lower one, so that the
// limit can only fall. In and below the folders given, it returns each of them.
func (t *Types) Literals(most, limit int, none ...string) []string {
	var found []string
	count, byPackage := 0, map[string][]string{}
	for _, p := range t.packages {
		places := t.crowded(p, most)
		if slices.ContainsFunc(none, func(above string) bool { return within(p.dir, above) }) {
			found = append(found, places...)
			continue
		}
		count += len(places)
		byPackage[p.dir] = places
	}
	slices.Sort(found)
	switch {
	case count > limit:
		const say = "%d literals of more than %d fields have two on a line, at most %d: give each field a line"
		return slices.Concat(found, []string{fmt.Sprintf(say, count, most, limit)}, slices.Concat(largest(byPackage, 3)...))
	case count < limit-slack:
		const say = "%d literals of more than %d fields have two on a line: lower the limit from %d to %d"
		found = append(found, fmt.Sprintf(say, count, most, limit, count))
	}
	return found
}

// crowded returns the literals of a package that give more than most fields of a struct and put two of them on one
// line.
func (t *Types) crowded(p *checked, most int) (places []string) {
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if ok && len(lit.Elts) > most && !tableRow(lit) && ofStruct(p.info.Types[lit].Type) && t.shareLine(lit.Elts) {
				at := t.fset.Position(lit.Pos())
				places = append(places, fmt.Sprintf("%s:%d: literal of %d fields", at.Filename, at.Line, len(lit.Elts)))
			}
			return true
		})
	}
	return places
}

// tableRow reports whether a literal names neither its type nor its fields.
func tableRow(lit *ast.CompositeLit) bool {
	_, keyed := lit.Elts[0].(*ast.KeyValueExpr)
	return lit.Type == nil && !keyed
}

// ofStruct reports whether a literal of the type makes a struct. The type is a pointer where a literal leaves out &T.
func ofStruct(t types.Type) bool {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// shareLine reports whether two of the expressions begin on the same line.
func (t *Types) shareLine(of []ast.Expr) bool {
	for i := 1; i < len(of); i++ {
		if t.fset.Position(of[i-1].Pos()).Line == t.fset.Position(of[i].Pos()).Line {
			return true
		}
	}
	return false
}
