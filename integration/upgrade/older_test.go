package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"taskledger/internal/testkit"
)

const (
	eventKinds = "events/kinds.go"
	whatIsRead = "store/reads.go"
)

var (
	kindList = regexp.MustCompile(`(?s)(const \(\n\tKindCreated Kind = 1 \+ iota\n)(.*?)(\tkindEnd\n\)\n)`)
	lowest   = regexp.MustCompile(`(var lowest = Reads\{Kind: events\.)(Kind\w+)`)
)

// release returns where the node of a release that lacks a kind of event and those behind it will be, and what builds
// it; "" = it has all. That every release reads most kinds is edited away. The working directory is the root of the
// module.
func release(t *testing.T, name, without string) (path string, build func() error) {
	t.Helper()
	texts := map[string]string{whatIsRead: edit(t, whatIsRead, lowest, "${1}KindCreated")}
	if without != "" {
		texts[eventKinds] = withoutKinds(t, without)
	}
	laid, err := testkit.LayOver(t.TempDir(), texts)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), name)
	return path, func() error {
		return testkit.BuildOver(t.Context(), laid, "build", "-o", path, "./integration/upgrade")
	}
}

// withoutKinds returns the list of kinds as it was before one of them, and those behind it, were added. Their names are
// left, since the rest of the sources uses them, behind the end.
func withoutKinds(t *testing.T, first string) string {
	t.Helper()
	text, err := os.ReadFile(eventKinds)
	if err != nil {
		t.Fatal(err)
	}
	found := kindList.FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no list of kinds", eventKinds)
	}
	names := strings.Fields(string(found[2]))
	at := slices.Index(names, first)
	if at < 0 {
		t.Fatalf("%s has no %s among %v", eventKinds, first, names)
	}
	var later strings.Builder
	for i, name := range names[at:] {
		fmt.Fprintf(&later, "\t%s Kind = kindEnd + %d\n", name, i)
	}
	list := fmt.Sprintf("${1}\t%s\n${3}\nconst (\n%s)\n", strings.Join(names[:at], "\n\t"), &later)
	older := kindList.ReplaceAllString(string(text), list)
	for _, name := range names[at:] {
		row := regexp.MustCompile(`\n\t` + name + `: .*`)
		if !row.MatchString(older) {
			t.Fatalf("%s has no row of %s", eventKinds, name)
		}
		older = row.ReplaceAllString(older, "")
	}
	return older
}

// edit is a file with what matches replaced.
func edit(t *testing.T, path string, what *regexp.Regexp, by string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !what.Match(text) {
		t.Fatalf("%s has nothing like %s", path, what)
	}
	return what.ReplaceAllString(string(text), by)
}
