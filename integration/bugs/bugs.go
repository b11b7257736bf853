// Package bugs breaks the code in the ways that its design forbids. A bug is an edit of a source file; the file is never
// touched: the broken text is laid over it for one build (go help build, -overlay).
package bugs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Bug is one way to break the code. Paths are relative to the root of the module.
type Bug struct {
	Name  string
	File  string
	Edits []Edit
	Pkg   string // of Test
	Test  string // the one that is there to notice; "" = none
}

// Edit replaces a text that occurs once.
type Edit struct{ Old, New string }

// Apply returns the text of the file with the bug in it.
func (b *Bug) Apply(text string) (string, error) {
	for _, e := range b.Edits {
		if n := strings.Count(text, e.Old); n != 1 {
			return "", fmt.Errorf("%d places read %q, want one", n, e.Old)
		}
		text = strings.Replace(text, e.Old, e.New, 1)
	}
	return text, nil
}

// Plant writes the files of the tree with all the bugs in them to dir, and returns the path of the overlay that lays them
// over it. The working directory is the root of the module.
func Plant(dir string, all ...Bug) (overlay string, err error) {
	texts := map[string]string{}
	for _, b := range all {
		text, seen := texts[b.File]
		if !seen {
			original, err := os.ReadFile(b.File)
			if err != nil {
				return "", err
			}
			text = string(original)
		}
		if texts[b.File], err = b.Apply(text); err != nil {
			return "", fmt.Errorf("%s: %s: %w", b.Name, b.File, err)
		}
	}
	return Lay(dir, texts)
}

// Lay writes texts, by the path that each is to be laid over, to dir, and returns the path of the overlay. The working
// directory is the root of the module.
func Lay(dir string, texts map[string]string) (overlay string, err error) {
	replace := map[string]string{}
	for file, text := range texts {
		original, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[original] = filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	description, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, description, 0o600)
}
