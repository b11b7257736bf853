package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Policy says what each package may import beyond the standard library.
type Policy struct{ rows []row }

type row struct {
	pkg, why string
	may      []string
}

// ParsePolicy reads a table of three columns separated by "|": the folder of a package, its allowed imports separated
// by spaces, and the reason. A folder ending in "/..." stands for itself and those below it without a row of their own.
// In place of a folder a pattern of path.Match may stand that ends in ".go": those files have this row instead of their
// package's. An allowed import names a folder of the module, with all below it if it ends in "/...", or a third-party
// path with all below it. The row "tests" lists what every test file may import besides, in addition to all packages of
// the module. Empty lines and lines that begin with "#" are skipped.
func ParsePolicy(table string) (*Policy, error) {
	p := new(Policy)
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, "|")
		if len(columns) != 3 || strings.TrimSpace(columns[2]) == "" {
			return nil, fmt.Errorf("policy row %q: want package | imports | why", line)
		}
		p.rows = append(p.rows, row{strings.TrimSpace(columns[0]), strings.TrimSpace(columns[2]), strings.Fields(columns[1])})
	}
	return p, nil
}

// of returns the row of a file: one of its own, else that of its package.
func (p *Policy) of(f *file) *row {
	for i := range p.rows {
		if own, _ := path.Match(p.rows[i].pkg, f.path); own {
			return &p.rows[i]
		}
	}
	return p.row(f.dir)
}

// row returns the row of a package: its own, else the one with the longest "/..." above it.
func (p *Policy) row(pkg string) *row {
	var best *row
	for i := range p.rows {
		r := &p.rows[i]
		if r.pkg == pkg {
			return r
		}
		above, ok := strings.CutSuffix(r.pkg, "/...")
		if ok && within(pkg, above) && (best == nil || len(r.pkg) > len(best.pkg)) {
			best = r
		}
	}
	return best
}

// Imports returns every import that the policy does not allow, and every package that it does not know.
func (s *Source) Imports(p *Policy) []string {
	var found []string
	for _, f := range s.files {
		r := p.of(&f)
		if r == nil {
			found = append(found, fmt.Sprintf("%s: package %s has no row in the import policy", f.path, f.dir))
			continue
		}
		for _, spec := range f.ast.Imports {
			name := imported(spec)
			if !standard(name, s.module) && !s.allowed(p, r, &f, name) {
				found = append(found, fmt.Sprintf("%s: %s must not import %s (%s)", s.at(spec), f.dir, name, r.why))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Unused returns every permission of the policy that no import needs, and every row of no package. What test files may
// import anyway needs no permission.
func (s *Source) Unused(p *Policy) []string {
	var found []string
	for i := range p.rows {
		r := &p.rows[i]
		if r.pkg != "tests" && !slices.ContainsFunc(s.files, func(f file) bool { return p.of(&f) == r }) {
			found = append(found, fmt.Sprintf("the import policy has a row for %s, and there is no such package", r.pkg))
			continue
		}
		for _, may := range r.may {
			if !s.needs(p, r, may) {
				found = append(found, fmt.Sprintf("%s need not be allowed to import %s: nothing there does", r.pkg, may))
			}
		}
	}
	slices.Sort(found)
	return found
}

// needs reports whether a file that the row is of imports something that this permission allows, and nothing but the
// row does.
func (s *Source) needs(p *Policy, r *row, may string) bool {
	for i := range s.files {
		f := &s.files[i]
		of := p.of(f)
		if of != r && (r.pkg != "tests" || !f.test) {
			continue
		}
		for _, spec := range f.ast.Imports {
			name := imported(spec)
			if standard(name, s.module) || !permits(may, name, s.module) {
				continue
			}
			if r.pkg == "tests" && of.allows(name, s.module) || r.pkg != "tests" && f.test && s.anyTest(p, name) {
				continue
			}
			return true
		}
	}
	return false
}

// standard reports whether an import is of the standard library: those paths begin without a dot.
func standard(name, module string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".") && !within(name, module)
}

func (s *Source) allowed(p *Policy, r *row, f *file, name string) bool {
	return r.allows(name, s.module) || f.test && s.anyTest(p, name)
}

// anyTest reports whether every test file may import it.
func (s *Source) anyTest(p *Policy, name string) bool {
	tests := p.row("tests")
	return within(name, s.module) || tests != nil && tests.allows(name, s.module)
}

func (r *row) allows(name, module string) bool {
	return slices.ContainsFunc(r.may, func(may string) bool { return permits(may, name, module) })
}

// permits reports whether a permission is one to import name.
func permits(may, name, module string) bool {
	if !standard(may, module) {
		return within(name, may)
	}
	below, all := strings.CutSuffix(module+"/"+may, "/...")
	return name == below || all && within(name, below)
}
