package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

const apiDocument = "docs/http-api.md"

// examples runs the examples of the HTTP API one after the other, in a directory where a node serves, the commands of
// the guides, the requests of EventNative's scheduler design, and the clients that are generated from the OpenAPI
// document of the node, which it lints. It needs curl, python3, node and npm.
func examples([]string) (err error) {
	text, err := os.ReadFile(apiDocument)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "documents")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := buildIn(dir); err != nil {
		return err
	}
	// Collections are at the root of a listener of their own. The last line that is printed says how to join.
	node, printed, err := startNode(dir, "serve --join", os.Environ(),
		"serve", "--api", "127.0.0.1:0", "--sync-listen", "127.0.0.1:0", "--exec-allow", "echo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopNode(node)) }()
	root := ""
	for _, line := range printed {
		if at, is := strings.CutPrefix(line, "sync "); is {
			root = strings.TrimSpace(at)
		}
	}
	blocks := regexp.MustCompile("(?s)```(sh|python|js)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 5 {
		return fmt.Errorf("%s has %d examples, want 5 or more", apiDocument, len(blocks))
	}
	for i, block := range blocks {
		language, program := block[1], block[2]
		if err := example(dir, language, blocks[0][2], program); err != nil {
			return fmt.Errorf("example %d, in %s: %w\n%s", i+1, language, err, program)
		}
	}
	fmt.Printf("%d examples of %s do what they say\n", len(blocks), apiDocument)
	if err := firstHour(dir); err != nil {
		return err
	}
	if err := scheduler(dir, blocks[0][2], root); err != nil {
		return err
	}
	return clients(dir, blocks[0][2])
}

// example runs a program in the environment that the first example makes.
func example(dir, language, environment, program string) error {
	var name, file string
	switch language {
	case "sh":
		name, file, program = "bash", "example.sh", "set -euo pipefail\n"+program
	case "python":
		name, file = "python3", "example.py"
	case "js":
		name, file = "node", "example.mjs"
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(program), 0o600); err != nil {
		return err
	}
	cmd := exec.Command("bash", "-euc", environment+"\nexec "+name+" "+file)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
