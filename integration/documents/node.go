package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// programIn returns where the program of a directory is.
func programIn(dir string) string { return filepath.Join(dir, "taskledger") }

// buildIn builds the program.
func buildIn(dir string) error {
	if err := say("go", "build", "-o", programIn(dir), "./cmd/node"); err != nil {
		return fmt.Errorf("build the node: %w", err)
	}
	return nil
}

// say runs a command whose output is that of this program.
func say(name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// startNode starts the program of a directory there, and returns what it has printed when a line has the text.
func startNode(dir, until string, env []string, args ...string) (node *exec.Cmd, printed []string, err error) {
	node = exec.Command(programIn(dir), args...)
	node.Dir, node.Env, node.Stderr = dir, env, os.Stderr
	out, err := node.StdoutPipe()
	if err == nil {
		err = node.Start()
	}
	if err != nil {
		return nil, nil, err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		printed = append(printed, strings.TrimSpace(lines.Text()))
		if strings.Contains(lines.Text(), until) {
			go io.Copy(io.Discard, out) // until the node ends
			return node, printed, nil
		}
	}
	return nil, nil, fmt.Errorf("taskledger %s: it has ended: %w", strings.Join(args, " "), node.Wait())
}

// stopNode has a node leave in order.
func stopNode(node *exec.Cmd) error {
	return errors.Join(node.Process.Signal(syscall.SIGTERM), node.Wait())
}
