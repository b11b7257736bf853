package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// What a user meets first. A prebuilt binary gives its first result within 5 s on a quiet machine, the 2 s that its
// task sleeps among them; a busy one may take ten times as long.
const (
	firstResult = 5 * time.Second
	busy        = 10
)

// hour builds the program, and does with it what a newcomer does.
func hour([]string) error {
	dir, err := os.MkdirTemp("", "documents")
	if err != nil {
		return err
	}
	if err = buildIn(dir); err == nil {
		err = firstHour(dir)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// firstHour does what a newcomer does in the first hour, with the program that dir has: types the quick start of the
// README as it stands there, then what somebody guesses who knows another queue of tasks, then the guides.
func firstHour(dir string) error {
	began := time.Now()
	s, err := newSession(filepath.Join(dir, "first"), programIn(dir))
	if err != nil {
		return err
	}
	err = quickStart(s)
	if err == nil {
		err = guessAll(s)
	}
	if err := errors.Join(err, s.end()); err != nil {
		return err
	}
	if err := runGuides(dir); err != nil {
		return err
	}
	fmt.Printf("the first hour took %s\n", time.Since(began).Round(time.Second))
	return nil
}

// quickStart types the quick start from the start of the node on. The binary is there already.
func quickStart(s *session) error {
	module, err := os.ReadFile("go.mod") // of which the quick start computes the checksum
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "go.mod"), module, 0o600)
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	_, quick, _ := strings.Cut(string(text), "## Quick start\n")
	quick, _, _ = strings.Cut(quick, "\n## ")
	blocks := blocksOf(quick, "sh")
	if len(blocks) != 2 {
		return fmt.Errorf("the quick start has %d blocks, want one that starts a node and one beside it", len(blocks))
	}
	lines := append(linesOf(blocks[0]), linesOf(blocks[1])...)
	if !strings.HasPrefix(lines[0], "go build ") {
		return fmt.Errorf("the quick start does not build first: %s", lines[0])
	}
	began, had := time.Now(), false
	for _, line := range lines[1:] {
		if err := s.typesAll([]string{line}); err != nil {
			return fmt.Errorf("README.md: %w", err)
		}
		if had || !strings.Contains(line, "--wait") {
			continue
		}
		had = true
		took := time.Since(began)
		fmt.Printf("a prebuilt binary gave its first result after %.1f s\n", took.Seconds())
		if took > busy*firstResult {
			return fmt.Errorf("the first result came after %s, want %s at most", took, busy*firstResult)
		}
	}
	if !had {
		return errors.New("the quick start waits for no result")
	}
	return nil
}
