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

// fields calls each with every field of a package that is, or holds, an interface which the module declares, and with
// the folder and name of the type around it.
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
					t.held(p.info.TypeOf(field.Type), map[types.Type]bool{}, func(of *types.Interface, name string) { each(owner, field, of, name) })
				}
				return true
			})
		}
	}
}

// held calls each with every interface of the module that values of a type are, hold, take, return or are instances
// with, and with every one that is made of others where the type is written. What is in the fields of a struct is that
// struct's.
func (t *Types) held(typ types.Type, seen map[types.Type]bool, each func(of *types.Interface, name string)) {
	typ = types.Unalias(typ)
	if typ == nil || seen[typ] {
		return
	}
	seen[typ] = true
	switch u := typ.(type) {
	case *types.Named:
		for arg := range u.TypeArgs().Types() {
			t.held(arg, seen, each)
		}
		if !t.own(u.Obj()) {
			return
		}
		if of, ok := u.Underlying().(*types.Interface); ok {
			each(of, path.Base(u.Obj().Pkg().Path())+"."+u.Obj().Name())
			return
		}
		t.held(u.Underlying(), seen, each)
	case *types.TypeParam:
		t.held(u.Constraint(), seen, each)
	case *types.Interface:
		if u.NumEmbeddeds() > 0 && u.NumMethods() > 0 {
			each(u, "interface{...}")
		}
	case *types.Map:
		t.held(u.Key(), seen, each)
		t.held(u.Elem(), seen, each)
	case *types.Signature:
		for v := range u.Params().Variables() {
			t.held(v.Type(), seen, each)
		}
		for v := range u.Results().Variables() {
			t.held(v.Type(), seen, each)
		}
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		t.held(u.Elem(), seen, each)
	}
}
