// Command documents runs the examples of docs/http-api.md as they stand there, one after the other, in a directory
// where a node serves, the commands of the guides, the requests of EventNative's scheduler design, and the clients that
// are generated from the OpenAPI document of the node, which it lints. It needs curl, python3, node and npm, and is run
// from the root of the project.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

const document = "docs/http-api.md"

func main() {
	do := run
	if len(os.Args) == 2 && os.Args[1] == "hour" {
		do = runHour
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "documents:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "documents")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root, stop, err := serve(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	blocks := regexp.MustCompile("(?s)```(sh|python|js)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 5 {
		return fmt.Errorf("%s has %d examples, want 5 or more", document, len(blocks))
	}
	for i, block := range blocks {
		language, program := block[1], block[2]
		if err := example(dir, language, blocks[0][2], program); err != nil {
			return fmt.Errorf("example %d, in %s: %w\n%s", i+1, language, err, program)
		}
	}
	fmt.Printf("%d examples of %s do what they say\n", len(blocks), document)
	if err := firstHour(dir); err != nil {
		return err
	}
	if err := scheduler(dir, blocks[0][2], root); err != nil {
		return err
	}
	return clients(dir, blocks[0][2])
}

// runHour builds the program, and does with it what a newcomer does.
func runHour() error {
	dir, err := os.MkdirTemp("", "documents")
	if err != nil {
		return err
	}
	if _, err = build(dir); err == nil {
		err = firstHour(dir)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// build builds the program in dir.
func build(dir string) (binary string, err error) {
	binary = filepath.Join(dir, "taskledger")
	build := exec.Command("go", "build", "-o", binary, "./cmd/node")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("build the node: %w", err)
	}
	return binary, nil
}

// serve runs a node until stop. Collections are at the root of a listener of their own.
func serve(dir string) (root string, stop func() error, err error) {
	binary, err := build(dir)
	if err != nil {
		return "", nil, err
	}
	node := exec.Command(binary, "serve", "--api", "127.0.0.1:0", "--sync-listen", "127.0.0.1:0", "--exec-allow", "echo")
	node.Dir, node.Stderr = dir, os.Stderr
	out, err := node.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := node.Start(); err != nil {
		return "", nil, err
	}
	stop = func() error { return errors.Join(node.Process.Signal(syscall.SIGTERM), node.Wait()) }
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if at, is := strings.CutPrefix(strings.TrimSpace(lines.Text()), "sync "); is {
			root = strings.TrimSpace(at)
		}
		if strings.Contains(lines.Text(), "serve --join") { // the last line of what it prints
			return root, stop, nil
		}
	}
	return "", nil, errors.Join(errors.New("the node has ended"), node.Wait())
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
