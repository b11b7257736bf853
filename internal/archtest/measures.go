package archtest

import (
	"go/ast"
	"go/types"
	"strings"
)

// Measures holds the counts of a package.
type Measures struct {
	Package    string
	Files      int // of those that this system compiles, without tests; Circle counts the same files
	Circle     int // files of the largest circle
	Lines      int // without tests
	TestLines  int
	BlackBox   int // of TestLines, those in a package of their own
	Exported   int // names
	Widest     int // methods of the widest interface of the module in a field; types named Config are left out
	WidestName string
}

// Measures counts each package, in the order of their folders.
func (s *Source) Measures(t *Types) (all []Measures) {
	lines, exported := s.lines(func(f *file) bool { return !f.test }), s.exported()
	tests := s.lines(func(f *file) bool { return f.test })
	blackBox := s.lines(func(f *file) bool { return f.test && strings.HasSuffix(f.ast.Name.Name, "_test") })
	for _, dir := range s.dirs() {
		m := Measures{
			Package: dir, Lines: lines[dir], TestLines: tests[dir], BlackBox: blackBox[dir], Exported: len(exported[dir]),
		}
		if p := t.byDir[dir]; p != nil {
			m.Files, m.Circle = len(p.files), len(t.circle(p))
			t.fields(p, func(owner string, _ *ast.Field, of *types.Interface, name string) {
				if of.NumMethods() > m.Widest && !strings.HasSuffix(owner, "Config") {
					m.Widest, m.WidestName = of.NumMethods(), name
				}
			})
		}
		all = append(all, m)
	}
	return all
}

// dirs returns the folders with Go files, in order.
func (s *Source) dirs() (dirs []string) {
	seen := map[string]bool{}
	for _, f := range s.files {
		if !seen[f.dir] {
			seen[f.dir] = true
			dirs = append(dirs, f.dir)
		}
	}
	return dirs
}

// lines counts the lines of the files of each package that count.
func (s *Source) lines(count func(*file) bool) map[string]int {
	lines := map[string]int{}
	for i := range s.files {
		if f := &s.files[i]; count(f) {
			lines[f.dir] += f.lines
		}
	}
	return lines
}
