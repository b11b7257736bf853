package archtest

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	quotedGo = regexp.MustCompile("`([\\w./-]+\\.go)`")
	folder   = regexp.MustCompile(`^\*\*([\w/-]+/)\*\*`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noAnchor = regexp.MustCompile(`[^\w\- ]`)
)

// Documents returns every link of a Markdown file that leads to no file or heading of the tree, and every Go file that
// one names, by path or by its last element, which the tree does not have. Below a paragraph that begins with a folder
// in bold, as in
// **engine/**, up to the next one or a heading, files are those of that folder. CHANGELOG.md tells of the past and may name what
// is gone.
func Documents(fsys fs.FS) ([]string, error) {
	names, documents, err := documentTree(fsys)
	if err != nil {
		return nil, err
	}
	var found []string
	for name, text := range documents {
		inside := ""
		for number, line := range slices.Collect(strings.Lines(text)) {
			if m := folder.FindStringSubmatch(line); m != nil {
				inside = m[1]
			} else if strings.HasPrefix(line, "#") {
				inside = ""
			}
			at := fmt.Sprintf("%s:%d: ", name, number+1)
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				if !strings.Contains(m[1], "://") && !leads(names, documents, name, m[1]) {
					found = append(found, at+"nothing is at "+m[1])
				}
			}
			for _, m := range quotedGo.FindAllStringSubmatch(line, -1) {
				if !names[inside+m[1]] && name != "CHANGELOG.md" {
					found = append(found, at+"there is no file "+m[1])
				}
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// documentTree returns the paths and last elements of all files, and the texts of the Markdown files.
func documentTree(fsys fs.FS) (names map[string]bool, documents map[string]string, err error) {
	names, documents = map[string]bool{}, map[string]string{}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && untracked(name):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		names[name], names[path.Base(name)] = true, true
		if path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		documents[name] = string(text)
		return err
	})
	return names, documents, err
}

// leads reports whether a link of a document leads to a file and, where it names a heading, to that.
func leads(names map[string]bool, documents map[string]string, from, to string) bool {
	to, anchor, named := strings.Cut(to, "#")
	target := from
	if to != "" {
		target = path.Join(path.Dir(from), to)
	}
	if !names[target] {
		return false
	}
	return !named || slices.ContainsFunc(heading.FindAllStringSubmatch(documents[target], -1), func(m []string) bool {
		return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor
	})
}

// mostColumns bounds the lines of a document: longer ones cannot be compared, or read in a terminal.
const mostColumns = 140

// LongDocuments returns the lines of Markdown files that are longer than mostColumns, but for code, and the files that
// have more lines than a limit for them.
func LongDocuments(fsys fs.FS, limits map[string]int) ([]string, error) {
	_, documents, err := documentTree(fsys)
	if err != nil {
		return nil, err
	}
	var found []string
	for name, text := range documents {
		code := false
		for number, line := range slices.Collect(strings.Lines(text)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			quoted := strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "  `") // a block, or an example by itself
			if n := utf8.RuneCountInString(line); n > mostColumns && !code && !quoted {
				found = append(found, fmt.Sprintf("%s:%d: %d columns, want %d at most", name, number+1, n, mostColumns))
			}
		}
		if most, limited := limits[name]; limited && strings.Count(text, "\n") > most {
			found = append(found, fmt.Sprintf("%s: %d lines, want %d at most", name, strings.Count(text, "\n"), most))
		}
	}
	slices.Sort(found)
	return found, nil
}
