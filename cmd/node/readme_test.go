package main_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// snippets returns the code blocks of a document in a language.
func snippets(t *testing.T, document, language string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	return found
}

// documents returns the README and everything below docs.
func documents(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(found) < 10 {
		t.Fatal(found, err)
	}
	return append(found, "../../README.md")
}

// examples returns all programs and examples that the tests of the tree build or run.
func examples(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		isExample := strings.Contains(path, "/examples/") || strings.Contains(filepath.Base(path), "example")
		if err != nil || d.IsDir() || !isExample || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestDocuments_GoIsThatOfTheExamples(t *testing.T) {
	t.Parallel()
	all, blocks := examples(t), 0
	for _, document := range documents(t) {
		for _, s := range snippets(t, document, "go") {
			if blocks++; !strings.Contains(all, s) {
				t.Errorf("%s: no example holds:\n%s", document, s)
			}
		}
	}
	if blocks < 10 {
		t.Errorf("there are %d blocks of Go", blocks)
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
	blocks := snippets(t, "../../README.md", "sh")
	if len(blocks) < 3 {
		t.Fatalf("%d blocks", len(blocks))
	}
	first := regexp.MustCompile(`(?m)^\./taskledger serve (.*?) +#`).FindStringSubmatch(blocks[1])
	if first == nil {
		t.Fatalf("no node is started: %s", blocks[1])
	}
	serve(t, dir, append(strings.Fields(first[1]), "--ttl", "3s")...)
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

// The commands that make a module of one's own beside a checkout, as they stand there. The program is compiled and not
// run: examples/hello does that.
func TestReadme_AModuleBesideACheckoutBuilds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	checkout, err := filepath.Abs("../..")
	if err == nil {
		err = os.Symlink(checkout, dir+"/taskledger")
	}
	if err != nil {
		t.Fatal(err)
	}
	blocks := snippets(t, "../../README.md", "sh")
	at := slices.IndexFunc(blocks, func(block string) bool { return strings.Contains(block, "go work init") })
	if at < 0 {
		t.Fatal("no such block")
	}
	script, run := strings.CutSuffix(blocks[at], "go run .\n")
	if !run {
		t.Fatalf("the program is not run: %q", blocks[at])
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", script+"go vet .")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The manual of the command line names every command of the program, and no document names a flag that no command has.
func TestManual_NamesTheCommandsAndFlagsThatThereAre(t *testing.T) {
	t.Parallel()
	var texts []string
	ofOthers := []string{"backup.md", "http-api.md", "reliability.md"} // with flags of etcd, curl and the harnesses
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(ofOthers, filepath.Base(path)) {
			texts = append(texts, string(text))
		}
	}
	manual, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{ // of other programs
		"--auto-compaction-mode": true, "--auto-compaction-retention": true, "--compaction-batch-limit": true, "--quota-backend-bytes": true, "--max-request-bytes": true, // etcd
		"--server": true, "--nkey": true, "--count": true, // nats
		"--max-retries": true,                                                           // of other queues, which is answered with the name here
		"--month":       true, "--ulimit": true, "--stop-timeout": true, "--init": true, // date, docker
	}
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	dir := t.TempDir()
	commands := regexp.MustCompile(`(?m)^  ([a-z-]+) +[A-Z]`)
	for _, m := range commands.FindAllStringSubmatch(must(t, dir, "--help"), -1) {
		command := m[1]
		if command == "help" {
			continue
		}
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + command + "[` ]").Match(manual) {
			t.Errorf("the manual does not name the command %s", command)
		}
		help := must(t, dir, command, "--help")
		for _, below := range commands.FindAllStringSubmatch(help, -1) {
			help += must(t, dir, command, below[1], "--help")
		}
		for _, name := range flag.FindAllString(help, -1) {
			flags[name] = true
		}
	}
	for _, text := range texts {
		for _, name := range flag.FindAllString(text, -1) {
			if !flags[name] {
				t.Errorf("no command has the flag %s", name)
			}
		}
	}
}
