package testkit_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"taskledger/internal/testkit"
)

// write writes files to a new working directory.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for file, text := range files {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestApply_WantsEachTextOnce(t *testing.T) {
	for text, ok := range map[string]bool{"": false, "a": true, "aa": false} {
		write(t, map[string]string{"a.go": text})
		got, err := testkit.ApplyEdits(testkit.Edit{File: "a.go", Old: "a", New: "b"})
		if (err == nil) != ok || ok && got["a.go"] != "b" {
			t.Errorf("%q becomes %q, %v", text, got, err)
		}
	}
	if _, err := testkit.ApplyEdits(testkit.Edit{File: "none.go"}); err == nil {
		t.Error("a file that is not there is edited")
	}
}

func TestLay_LaysAllEditsOfAFileOverIt(t *testing.T) {
	write(t, map[string]string{"a.go": "one two"})
	edit := func(old, text string) testkit.Edit { return testkit.Edit{File: "a.go", Old: old, New: text} }
	texts, err := testkit.ApplyEdits(edit("one", "1"), edit("two", "2"))
	if err != nil {
		t.Fatal(err)
	}
	path, err := testkit.LayOver(t.TempDir(), texts)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
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
		t.Errorf("%s lays %q over it, %v", path, got, err)
	}
	if _, err := testkit.ApplyEdits(edit("three", "3")); err == nil {
		t.Error("an edit of what is not there is made")
	}
}

func TestBuild_LaysTheOverlayOverTheTree(t *testing.T) {
	write(t, map[string]string{"go.mod": "module m\n", "main.go": "package main\n\nfunc main() { one }\n"})
	err := testkit.BuildOver(t.Context(), "", "build", "-o", "broken")
	if err == nil || !strings.Contains(err.Error(), "undefined: one") {
		t.Errorf("what does not compile: %v", err)
	}
	path, err := testkit.LayOver(t.TempDir(), map[string]string{"main.go": "package main\n\nfunc main() {}\n"})
	if err != nil {
		t.Fatal(err)
	}
	if err := testkit.BuildOver(t.Context(), path, "build", "-o", "sound"); err != nil {
		t.Error(err)
	}
}
