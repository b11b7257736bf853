package archtest

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"slices"
)

// Unions returns every field of a struct whose type is an interface of the module that embeds others, or holds such: a
// struct names the ports that it needs. Those that may have such fields are given by folder and name, as in
// "engine.NodeConfig"; it is a violation when one of them has none.
func (t *Types) Unions(may ...string) []string {
	var found []string
	needed := map[string]bool{}
	for _, p := range t.packages {
		t.fields(p, func(owner string, field *ast.Field, of *types.Interface, name string) {
			switch {
			case of.NumEmbeddeds() == 0:
			case slices.Contains(may, owner):
				needed[owner] = true
			default:
				at := t.fset.Position(field.Pos())
				found = append(found, fmt.Sprintf("%s:%d: a field of %s is the union %s of %d methods", at.Filename, at.Line, owner, name, of.NumMethods()))
			}
		})
	}
	for _, owner := range may {
		if !needed[owner] {
			found = append(found, fmt.Sprintf("%s: may have a union in a field, and has none", owner))
		}
	}
	slices.Sort(found)
	return found
}

// fields calls each with every field of a package that is, or holds, an interface which the module declares, and with the
// folder and name of the type around it.
func (t *Types) fields(p *checked, each func(owner string, field *ast.Field, of *types.Interface, name string)) {
	for _, f := range p.files {
		for _, d := range f.Decls {
			owner := p.dir
			ast.Inspect(d, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					owner = p.dir + "." + spec.Name.Name
				}
				s, ok := n.(*ast.StructType)
				if !ok {
					return true
				}
				for _, field := range s.Fields.List {
					if named, of := t.heldInterface(p.info.TypeOf(field.Type)); of != nil {
						each(owner, field, of, path.Base(named.Pkg().Path())+"."+named.Name())
					}
				}
				return true
			})
		}
	}
}

// heldInterface returns the interface of the module that values of a type are or hold, or nil.
func (t *Types) heldInterface(typ types.Type) (*types.TypeName, *types.Interface) {
	for {
		switch u := types.Unalias(typ).(type) {
		case *types.Named:
			of, ok := u.Underlying().(*types.Interface)
			if !ok || !t.own(u.Obj()) {
				return nil, nil
			}
			return u.Obj(), of
		case interface{ Elem() types.Type }: // pointer, slice, array, map, channel
			typ = u.Elem()
		default:
			return nil, nil
		}
	}
}
