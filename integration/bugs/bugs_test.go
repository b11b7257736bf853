package bugs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/integration/bugs"
)

func TestApply_WantsEachTextOnce(t *testing.T) {
	for text, ok := range map[string]bool{"": false, "a": true, "aa": false} {
		b := bugs.Bug{Edits: []bugs.Edit{{Old: "a", New: "b"}}}
		if got, err := b.Apply(text); (err == nil) != ok || ok && got != "b" {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
}

func TestMutations_FitTheCode(t *testing.T) {
	t.Chdir("../..")
	for _, b := range bugs.Mutations {
		if _, err := bugs.Plant(t.TempDir(), b); err != nil {
			t.Error(err)
		}
	}
}

func TestPlant_MakesAllEditsOfAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.go", []byte("one two"), 0o600); err != nil {
		t.Fatal(err)
	}
	edit := func(old, text string) bugs.Bug {
		return bugs.Bug{File: "a.go", Edits: []bugs.Edit{{Old: old, New: text}}}
	}
	overlay, err := bugs.Plant(t.TempDir(), edit("one", "1"), edit("two", "2"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(overlay)
	if err != nil {
		t.Fatal(err)
	}
	var o struct{ Replace map[string]string }
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	original, err := filepath.Abs("a.go")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(o.Replace[original]); err != nil || string(got) != "1 2" {
		t.Errorf("%s lays %q over it, %v", overlay, got, err)
	}
	if _, err := bugs.Plant(t.TempDir(), edit("three", "3")); err == nil {
		t.Error("an edit of what is not there is made")
	}
}

func TestBuild_LaysTheOverlayOverTheTree(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{"go.mod": "module m\n", "main.go": "package main\n\nfunc main() { one }\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := bugs.Build(t.Context(), "", "build", "-o", "broken"); err == nil || !strings.Contains(err.Error(), "undefined: one") {
		t.Errorf("what does not compile: %v", err)
	}
	overlay, err := bugs.Lay(t.TempDir(), map[string]string{"main.go": "package main\n\nfunc main() {}\n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := bugs.Build(t.Context(), overlay, "build", "-o", "sound"); err != nil {
		t.Error(err)
	}
}
