package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// node is a taskledger of its own, which goes with the program.
type node struct {
	dir, url, token string
	cmd             *exec.Cmd
}

// startNode builds a node and starts it, with the store default at the root of a listener.
func startNode(ctx context.Context) (_ *node, err error) {
	n := &node{}
	if n.dir, err = os.MkdirTemp("", "mapreduce-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.stop())
		}
	}()
	program, data := filepath.Join(n.dir, "taskledger"), filepath.Join(n.dir, "data")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "taskledger/cmd/node").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the node: %w: %s", err, out)
	}
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, err
	}
	made, err := exec.CommandContext(ctx, program, "token", "new", "mapreduce", "--role", "submitter", "--affinity-prefix", "store:default", "--data", data).Output()
	if err != nil {
		return nil, fmt.Errorf("make a token: %w", err)
	}
	n.token = strings.TrimSpace(string(made))
	n.cmd = exec.Command(program, "serve", "--data", data, "--api", "127.0.0.1:0", "--store-listen", "127.0.0.1:0", "--archive", "keep") //nolint:noctx // it is told to stop, and drains
	var told bytes.Buffer
	n.cmd.Stderr = &told
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for n.url == "" && lines.Scan() {
		if at, is := strings.CutPrefix(strings.TrimSpace(lines.Text()), "store "); is {
			n.url = strings.TrimSpace(at)
		}
	}
	if n.url == "" {
		_ = n.cmd.Wait() // it has closed its output, and says why
		n.cmd = nil
		return nil, fmt.Errorf("the node has not started: %s", told.String())
	}
	go func() { // until the node ends
		for lines.Scan() {
		}
	}()
	return n, nil
}

// stop ends the node and removes its data.
func (n *node) stop() error {
	if n.cmd != nil && n.cmd.Process != nil {
		_ = n.cmd.Process.Signal(os.Interrupt) // it may have ended
		_ = n.cmd.Wait()                       // nobody needs what it has stored
	}
	return os.RemoveAll(n.dir)
}
