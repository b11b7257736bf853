package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// named matches variables of the program, also where their first word is misspelt.
	named = regexp.MustCompile(`\bTASK[A-Z]*_[A-Z0-9_]+`)
	// listed matches a command line that stands in a list: the program first, or a command for the entry point.
	listed = regexp.MustCompile(`(?:(?:args: |command: |CMD )\[("[/a-z]+")|"CMD", ("/taskledger"))([^\]]*)\]`)
	// typed matches a command line that begins with the program, alone in its line, by its path, as a user, or in prose.
	typed = regexp.MustCompile(`(?m)(?:^#\s+|/|'\S+' |` + "`" + `)taskledger ([a-z][a-z-]*(?: [^\s>` + "`" + `]+)*)`)
)

// asked returns the command lines of the program in a text.
func asked(text string) (all [][]string, err error) {
	for _, m := range listed.FindAllStringSubmatch(text, -1) {
		var words []string
		if err := json.Unmarshal([]byte("["+m[1]+m[2]+m[3]+"]"), &words); err != nil {
			return nil, fmt.Errorf("%s: %w", m[0], err)
		}
		if words[0] == "/taskledger" {
			words = words[1:]
		}
		if len(words) > 0 {
			all = append(all, words)
		}
	}
	for _, m := range typed.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.Fields(m[1]))
	}
	return all, nil
}

// misspelt names the variables, commands and flags in a text that the program does not have.
func misspelt(text string) (wrong []string) {
	a := &app{}
	a.root()
	for _, name := range named.FindAllString(text, -1) {
		if !slices.Contains(a.settings.named(), name) {
			wrong = append(wrong, name)
		}
	}
	all, err := asked(text)
	if err != nil {
		return append(wrong, err.Error())
	}
	for _, words := range all {
		root := new(app).root()
		command, rest, err := root.Find(words)
		if err == nil && command == root {
			err = errors.New("no command is named so")
		}
		if err == nil {
			err = command.ParseFlags(rest)
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", strings.Join(words, " "), err))
		}
	}
	return wrong
}

func TestDeploy_NamesVariablesCommandsAndFlagsThatThereAre(t *testing.T) {
	for file, want := range map[string]struct{ variables, lines int }{
		"Dockerfile":                 {1, 2},
		"systemd/taskledger.service": {0, 1},
		"systemd/node.yaml":          {0, 1},
		"compose/compose.yaml":       {20, 4},
		"kubernetes/taskledger.yaml": {15, 4},
	} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "deploy", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if wrong := misspelt(text); wrong != nil {
			t.Errorf("%s: %q", file, wrong)
		}
		all, _ := asked(text) // misspelt has told of the error
		if found := len(named.FindAllString(text, -1)); found < want.variables || len(all) < want.lines {
			t.Errorf("%s: %d variables and %d command lines are read: %q", file, found, len(all), all)
		}
		// Each word that it gives to the program is found when it is misspelt.
		for _, name := range named.FindAllString(text, -1) {
			wantMisspelt(t, file, text, name, name+"X")
			wantMisspelt(t, file, text, name, strings.Replace(name, "TASKLEDGER", "TASKLEGDER", 1))
		}
		for _, words := range all {
			for _, word := range words {
				if strings.HasPrefix(word, "--") {
					flag, _, _ := strings.Cut(word, "=")
					wantMisspelt(t, file, text, flag, flag+"x")
				}
			}
			wantMisspelt(t, file, text, words[0], words[0]+"x")
		}
	}
}

func wantMisspelt(t *testing.T, file, text, is, planted string) {
	t.Helper()
	if misspelt(strings.ReplaceAll(text, is, planted)) == nil {
		t.Errorf("%s: nothing tells of %s for %s", file, planted, is)
	}
}
