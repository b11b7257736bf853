package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// How blocks are run. Any other text names a test, by its folder and function.
const (
	byGate     = "gate"     // .ci/run has the lines as steps
	byExamples = "examples" // an example, which is compiled and tested, holds the text: cmd/node compares them
	byGuides   = "guides"   // the guides of this package
	byAPI      = "api"      // this package runs each block of the document
	byBackups  = "backups"  // a script with the name behind the fence: the proof runs it on servers of its own
)

// blocks tells of each document the language of each fenced block, and how it is run.
var blocks = map[string][]string{
	"README.md": {
		"sh gate",
		"sh cmd/node TestReadme_QuickStartWorks",
		"sh cmd/node TestReadme_QuickStartWorks",
		"go examples",
		"sh cmd/node TestReadme_AModuleBesideACheckoutBuilds",
	},
	"docs/backup.md": {
		"sh backups environment",
		"sh backups users",
		"sh backups backup",
		"sh backups restore-member",
		"sh backups restore",
		"sh backups restored",
		"sh backups move",
		"sh backups move-member",
		"sh backups move-archive",
	},
	"docs/behaviors.md":   {"go examples", "go examples"},
	"docs/completions.md": {"sh guides", "go examples"},
	"docs/deploying.md":   {"sh guides"},
	"docs/files.md":       {"sh guides"},
	"docs/http-api.md":    {"sh api", "sh api", "python api", "js api", "sh api", "sh api", "sh api", "python api"},
	"docs/operating.md": {
		"sh guides",
		"promql cmd/node/internal/monitor TestManual_AlertsOnWhatIsMeasured",
	},
	"docs/own-servers.md": {
		"go examples",
		"go examples",
		"go examples",
		"sh examples/service TestService_TheAPITakesAnOrderWhileNoWorkerRunsAndAnswersWithItsBillOnceOneDoes",
		"go examples",
		"go examples",
	},
	"docs/schedules.md": {"go examples", "go examples", "sh guides"},
	"docs/streams.md":   {"go examples", "go examples"},
	"docs/sync.md":      {"yaml guides", "sh guides"},
	"docs/taskstore.md": {"sh guides", "sh guides", "go examples"},
	"docs/testing.md":   {"go examples", "sh guides"},
	"docs/upgrading.md": {"sh guides"},
	"docs/works.md": {
		"go examples",
		"go examples",
		"go examples",
		"sh examples/guides TestWorks_CommandsOfTheGuideDoWhatTheySay",
		"sh guides",
		"sh guides",
	},
}

// unfenced has the documents that have commands in indented lines, and how these are run.
var unfenced = map[string]string{
	"docs/backup.md":      "sh guides",
	"docs/reliability.md": "sh proof",
}

var (
	fence  = regexp.MustCompile("(?ms)^ *```([a-z]+)( [a-z-]+)?\n(.*?)^ *```$")
	apart  = regexp.MustCompile(`\n\n    \S`) // an indented line behind an empty one begins a block
	inside = regexp.MustCompile(`(?m)^    (?:taskledger|go run|make) .*$`)
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDocuments_EachBlockIsRun(t *testing.T) {
	paths, err := filepath.Glob(root + "/docs/*.md")
	if err != nil || len(paths) < 20 {
		t.Fatal(paths, err)
	}
	for _, path := range append(paths, root+"/README.md") {
		document, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		text := read(t, document)
		checkBlocks(t, document, text)
		if n := strings.Count(text, "```"); n != 2*len(fence.FindAllString(text, -1)) {
			t.Errorf("%s: of %d fences some have no language, or none that ends them", document, n)
		}
		has := apart.MatchString(fence.ReplaceAllString(text, ""))
		if _, named := unfenced[document]; has != named {
			t.Errorf("%s: indented commands: %t, want %t: fence what is to be typed", document, has, named)
		}
	}
	for document := range blocks {
		read(t, document)
	}
}

// checkBlocks holds the blocks of a document to the table, and the table to what runs them.
func checkBlocks(t *testing.T, document, text string) {
	t.Helper()
	found := fence.FindAllStringSubmatch(text, -1)
	if len(found) != len(blocks[document]) {
		t.Errorf("%s has %d blocks, and the table names %d", document, len(found), len(blocks[document]))
		return
	}
	commands := 0
	for i, block := range found {
		language, by, _ := strings.Cut(blocks[document][i], " ")
		if block[1] != language {
			t.Errorf("%s: block %d is of %s, and the table says %s", document, i, block[1], language)
		}
		if err := runs(t, document, by, language, block, commands); err != nil {
			t.Errorf("%s: block %d: %v", document, i, err)
		}
		if language == "sh" {
			commands++
		}
	}
}

// runs returns an error if a block is not run as the table says. commands is the number of blocks of commands before
// it.
func runs(t *testing.T, document, by, language string, block []string, commands int) error {
	t.Helper()
	how, name, _ := strings.Cut(by, " ")
	switch how {
	case byGate:
		gate := read(t, ".ci/run")
		for _, line := range linesOf(block[3]) {
			if !strings.Contains(gate, "\nstep "+line+"\n") {
				return fmt.Errorf(".ci/run does not run %s", line)
			}
		}
	case byExamples:
		if language != "go" {
			return fmt.Errorf("examples hold Go alone")
		}
	case byGuides:
		return guided(document, language, commands)
	case byAPI:
		if document != "docs/http-api.md" {
			return fmt.Errorf("the blocks of %s are not run so", document)
		}
	case byBackups:
		if strings.TrimSpace(block[2]) != name || !slices.ContainsFunc(sources(t), func(text string) bool {
			return strings.Contains(text, `"`+name+`"`)
		}) {
			return fmt.Errorf("no program runs the script %s", name)
		}
	default:
		return tested(how, name)
	}
	return nil
}

// guided returns an error if no guide runs a block.
func guided(document, language string, commands int) error {
	i := slices.IndexFunc(guides, func(g guide) bool { return "docs/"+g.document == document })
	switch {
	case i < 0:
		return fmt.Errorf("it is no guide")
	case language == "yaml" && guides[i].settings == "":
		return fmt.Errorf("the guide has no settings")
	case language == "sh" && !slices.Contains(guides[i].blocks, commands):
		return fmt.Errorf("the guide does not run block %d of commands", commands)
	}
	return nil
}

// sources returns the programs below integration that run scripts.
func sources(t *testing.T) (texts []string) {
	t.Helper()
	for _, pattern := range []string{"../backups/*.go", "*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if text, err := os.ReadFile(path); err != nil {
				t.Fatal(err)
			} else if !strings.HasSuffix(path, "_test.go") {
				texts = append(texts, string(text))
			}
		}
	}
	return texts
}

// tested returns an error if a folder has no test of the name.
func tested(folder, name string) error {
	paths, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return nil
		}
	}
	return fmt.Errorf("there is no test %s in %s", name, folder)
}

func TestDocuments_IndentedCommandsAreRun(t *testing.T) {
	for document, by := range unfenced {
		text := fence.ReplaceAllString(read(t, document), "")
		if by == "sh guides" {
			g := guides[slices.IndexFunc(guides, func(g guide) bool { return "docs/"+g.document == document })]
			if n := len(inside.FindAllString(text, -1)); !g.indented || n != len(indented.FindAllString(text, -1)) {
				t.Errorf("%s: its guide does not run all of %d indented lines", document, n)
			}
			continue
		}
		runs := read(t, "integration/proof/parts.go") + read(t, ".ci/run")
		for _, line := range inside.FindAllString(text, -1) {
			command := strings.Fields(line) // with other numbers, of histories or of seconds
			if what := strings.Join(command[:3], " "); !strings.Contains(runs, what) {
				t.Errorf("%s: neither the gate nor the proof runs %s", document, what)
			}
		}
	}
}
