package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// readyIn bounds the start of a node.
const readyIn = 2 * time.Minute

// node is a node that runs, and the rights of its user at its API.
type node struct {
	binary, dir string
	cmd         *exec.Cmd
	said        said
	URL, Token  string
}

// said holds what a program prints.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *said) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(data)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// serve starts a node with data in a directory, and waits until it answers.
func serve(ctx context.Context, binary, dir string, flags ...string) (*node, error) {
	n := &node{binary: binary, dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := n.start(append([]string{"serve", "--api", "127.0.0.1:0"}, flags...)...); err != nil {
		return nil, err
	}
	for {
		if text, err := os.ReadFile(filepath.Join(dir, "taskledger-data", "cluster.json")); err == nil {
			var door struct{ URL, Token string }
			if is, err := os.Stat(filepath.Join(dir, "taskledger-data", "cluster.json")); err == nil && is.ModTime().After(began) &&
				json.Unmarshal(text, &door) == nil && door.Token != "" {
				n.URL, n.Token = door.URL, door.Token
				if n.ask(ctx, http.MethodGet, "/v1/ready", nil, nil) == nil {
					return n, nil
				}
			}
		}
		if time.Since(began) > readyIn || ctx.Err() != nil {
			n.kill()
			return nil, fmt.Errorf("no node after %s: %s", readyIn, n.said.String())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// form sends a form to a page of the node, and returns where the answer leads.
func (n *node) form(ctx context.Context, path string, fields url.Values) (to string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL+path, strings.NewReader(fields.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+n.Token)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther {
		return "", fmt.Errorf("POST %s: %s", path, resp.Status)
	}
	return resp.Header.Get("Location"), nil
}

// start starts the program.
func (n *node) start(args ...string) error {
	n.cmd = exec.Command(n.binary, args...)
	n.cmd.Dir = n.dir
	n.cmd.Stdout, n.cmd.Stderr = &n.said, &n.said
	return n.cmd.Start()
}

// kill ends the node at once.
func (n *node) kill() {
	_ = n.cmd.Process.Kill() // it may have ended
	_ = n.cmd.Wait()
}

// stop lets the node end in order.
func (n *node) stop() error {
	return errors.Join(n.cmd.Process.Signal(syscall.SIGTERM), n.cmd.Wait())
}

// run runs a command of the program with the data of the node, and returns what it prints.
func (n *node) run(ctx context.Context, args ...string) (string, error) {
	c := exec.CommandContext(ctx, n.binary, args...)
	c.Dir = n.dir
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("taskledger %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// ask sends a request to the API of the node and decodes the answer, unless it is refused.
func (n *node) ask(ctx context.Context, method, path string, body, into any) error {
	var text io.Reader
	if body != nil {
		var data bytes.Buffer
		enc := json.NewEncoder(&data)
		enc.SetEscapeHTML(false) // markup arrives as it is
		if err := enc.Encode(body); err != nil {
			return err
		}
		text = &data
	}
	r, err := http.NewRequestWithContext(ctx, method, n.URL+path, text)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+n.Token)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return err
	case resp.StatusCode >= http.StatusMultipleChoices:
		return fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, answer)
	case into == nil:
		return nil
	}
	return json.Unmarshal(answer, into)
}
