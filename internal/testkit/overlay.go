package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Edit replaces a text that occurs once in its file.
type Edit struct{ File, Old, New string }

// ApplyEdits returns the texts of the edited files by their paths. Each edit meets what those before it have made of
// its file.
func ApplyEdits(edits ...Edit) (map[string]string, error) {
	texts := map[string]string{}
	for _, e := range edits {
		if _, edited := texts[e.File]; !edited {
			original, err := os.ReadFile(e.File)
			if err != nil {
				return nil, err
			}
			texts[e.File] = string(original)
		}
		if n := strings.Count(texts[e.File], e.Old); n != 1 {
			return nil, fmt.Errorf("%s: %d places read %q, want one", e.File, n, e.Old)
		}
		texts[e.File] = strings.Replace(texts[e.File], e.Old, e.New, 1)
	}
	return texts, nil
}

// LayOver writes texts, by the path that each is to be laid over, to dir, and returns the path of the overlay.
func LayOver(dir string, texts map[string]string) (overlay string, err error) {
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

// BuildOver runs a command of the go tool that builds, such as "build" or "test -c", with an overlay; "" = none.
func BuildOver(ctx context.Context, overlay, command string, args ...string) error {
	args = append([]string{command, "-ldflags=-s -w", "-overlay=" + overlay}, args...)
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", command, err, out)
	}
	return nil
}
