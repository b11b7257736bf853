package archtest

import (
	"fmt"
	"go/types"
	"slices"
)

// Surface returns every exported function, method, field, variable and constant of some packages whose type names a
// type that the folder below declares, or a folder under it. A name in may is excused, and is a violation where it
// needs no excuse.
func (t *Types) Surface(below string, packages []string, may ...string) []string {
	var found []string
	needed := map[string]bool{}
	for _, dir := range packages {
		p := t.byDir[dir]
		if p == nil || p.types == nil {
			found = append(found, fmt.Sprintf("%s: no such package", dir))
			continue
		}
		s := surface{hidden: t.module + "/" + below}
		for _, name := range p.types.Scope().Names() {
			s.declared(dir+"."+name, p.types.Scope().Lookup(name))
		}
		for name, of := range s.found {
			if needed[name] = slices.Contains(may, name); !needed[name] {
				found = append(found, fmt.Sprintf("%s names %s", name, of))
			}
		}
	}
	for _, name := range may {
		if !needed[name] {
			found = append(found, fmt.Sprintf("%s: may name a type of %s, and names none", name, below))
		}
	}
	slices.Sort(found)
	return found
}

// surface collects the names whose types name a hidden type, each with one of those.
type surface struct {
	hidden string // path of the folder
	found  map[string]string
}

// declared looks at an exported object of a package.
func (s *surface) declared(name string, o types.Object) {
	if !o.Exported() {
		return
	}
	is, isType := o.(*types.TypeName)
	if !isType {
		s.uses(name, o.Type())
		return
	}
	if is.IsAlias() {
		s.uses(name, types.Unalias(o.Type()))
		return
	}
	named := o.Type().(*types.Named)
	for m := range named.Methods() {
		if m.Exported() {
			s.uses(name+"."+m.Name(), m.Type())
		}
	}
	s.parts(name, named.Underlying())
}

// parts looks at what a type is made of.
func (s *surface) parts(name string, of types.Type) {
	switch u := of.(type) {
	case *types.Struct:
		for f := range u.Fields() {
			if hidden := f.Embedded() && !f.Exported(); hidden { // its fields and methods are seen all the same
				s.parts(name, f.Type().Underlying())
			} else if f.Exported() {
				s.uses(name+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for m := range u.ExplicitMethods() {
			if m.Exported() {
				s.uses(name+"."+m.Name(), m.Type())
			}
		}
	default:
		s.uses(name, of)
	}
}

// uses looks for a hidden type in the type of something.
func (s *surface) uses(name string, of types.Type) {
	switch u := types.Unalias(of).(type) {
	case *types.Named:
		if o := u.Obj(); o.Pkg() != nil && within(o.Pkg().Path(), s.hidden) {
			if s.found == nil {
				s.found = map[string]string{}
			}
			s.found[name] = o.Pkg().Name() + "." + o.Name()
		}
		for arg := range u.TypeArgs().Types() {
			s.uses(name, arg)
		}
	case *types.Signature:
		s.uses(name, u.Params())
		s.uses(name, u.Results())
	case *types.Tuple:
		for v := range u.Variables() {
			s.uses(name, v.Type())
		}
	case *types.Map:
		s.uses(name, u.Key())
		s.uses(name, u.Elem())
	case interface{ Elem() types.Type }: // a pointer, a slice, an array or a channel
		s.uses(name, u.Elem())
	case *types.Struct, *types.Interface:
		s.parts(name, u)
	}
}
