package archtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// machinePath matches paths that mean something on one machine only, where a path begins, and not behind a wildcard of
// a route. The brackets keep it from matching itself.
var machinePath = regexp.MustCompile(
	`(?:^|[^\w./}-])(/wor[k]/|/roo[t]/|/hom[e]/[a-z]|/User[s]/[A-Za-z]|/tm[p]/bash)|(\.\./share[d]/)`)

// MachinePaths returns every line of a text file that holds a path of somebody's machine. It reads everything but
// binary files, other hidden folders than .ci and .github, and what the node and make proof write beside themselves.
func MachinePaths(fsys fs.FS) ([]string, error) {
	var found []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && untracked(name):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return err
		}
		number := 0
		for line := range bytes.Lines(text) {
			number++
			if match := machinePath.Find(line); match != nil {
				found = append(found, fmt.Sprintf("%s:%d: machine path %q", name, number, match))
			}
		}
		return nil
	})
	slices.Sort(found)
	return found, err
}

func untracked(dir string) bool {
	base := path.Base(dir)
	return base == "taskledger-data" || dir == "proof" || strings.HasPrefix(base, ".") && !slices.Contains([]string{".", ".ci", ".github"}, base)
}
