package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
)

// Types are the checked packages of a module, without their tests and what other systems alone compile.
type Types struct {
	module   string
	fset     *token.FileSet
	packages []*checked // each after those that it imports
	byDir    map[string]*checked
}

// checked is a package whose types are known.
type checked struct {
	dir   string
	files []*ast.File
	types *types.Package // nil while the package is under way
	info  types.Info
}

// Types checks the packages of the module. What these import from elsewhere comes from foreign.
func (s *Source) Types(foreign types.Importer) (*Types, error) {
	t := &Types{module: s.module, fset: s.fset, byDir: map[string]*checked{}}
	files := map[string][]*ast.File{}
	for _, f := range s.files {
		if f.compiled && !f.test {
			files[f.dir] = append(files[f.dir], f.ast)
		}
	}
	for _, f := range s.files { // in the order of their folders
		if _, err := t.check(f.dir, files, foreign); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// check checks the package of a folder, unless that is done, and returns it. It is nil where there is none.
func (t *Types) check(dir string, files map[string][]*ast.File, foreign types.Importer) (*types.Package, error) {
	if known := t.byDir[dir]; known != nil {
		if known.types == nil {
			return nil, fmt.Errorf("%s imports itself", dir)
		}
		return known.types, nil
	}
	if len(files[dir]) == 0 {
		return nil, nil
	}
	p := &checked{dir: dir, files: files[dir], info: types.Info{
		Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{},
	}}
	t.byDir[dir] = p
	imports := importFunc(func(name string) (*types.Package, error) {
		if !within(name, t.module) {
			return foreign.Import(name)
		}
		below := "."
		if name != t.module {
			below = name[len(t.module)+1:]
		}
		found, err := t.check(below, files, foreign)
		if err == nil && found == nil {
			err = errors.New("no such package")
		}
		return found, err
	})
	config := types.Config{Importer: imports}
	checkedTypes, err := config.Check(path.Join(t.module, dir), t.fset, p.files, &p.info)
	if err != nil {
		return nil, fmt.Errorf("check types of %s: %w", dir, err)
	}
	p.types = checkedTypes
	t.packages = append(t.packages, p)
	return p.types, nil
}

// importFunc is a function that imports.
type importFunc func(name string) (*types.Package, error)

func (i importFunc) Import(name string) (*types.Package, error) { return i(name) }

// own reports whether an object is declared in the module.
func (t *Types) own(o types.Object) bool { return o.Pkg() != nil && within(o.Pkg().Path(), t.module) }
