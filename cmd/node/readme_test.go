package main_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// snippets returns the code blocks of the README in a language.
func snippets(t *testing.T, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

func TestReadme_GoIsThatOfTheExamples(t *testing.T) {
	t.Parallel()
	var examples string
	for _, path := range []string{"../../examples/hello/main.go", "../../examples/completed/main.go", "../../cluster/example_test.go"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		examples += string(text)
	}
	found := snippets(t, "go")
	if len(found) == 0 {
		t.Error("no Go in it")
	}
	for _, s := range found {
		if !strings.Contains(examples, s) {
			t.Errorf("no example holds:\n%s", s)
		}
	}
}

// The commands of the quick start that follow the start of the node, in order, as they stand there.
func TestReadme_QuickStartWorks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Symlink(binary, dir+"/taskledger"); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/go.mod", "module example\n")
	serve(t, dir, "--ttl", "3s")
	blocks := snippets(t, "sh")
	if len(blocks) < 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	for line := range strings.Lines(blocks[2]) {
		line, _, _ = strings.Cut(line, "  #")
		cmd := typed(t.Context(), dir, strings.TrimSpace(line))
		if strings.Contains(line, " serve ") {
			start(t, cmd)
		} else if r := finish(t, cmd); r.code != 0 {
			t.Errorf("%s: code %d: %s", line, r.code, r.err)
		}
	}
}
