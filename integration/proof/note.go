package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// folder has the notes; git ignores it.
const folder = "proof"

// The verdicts of a part. One that was interrupted is not noted.
const (
	verdictGreen = "green"
	verdictRed   = "red"
)

// note records the result of a part.
type note struct {
	Part       string    `json:"part"`
	Tree       string    `json:"tree"`
	Verdict    string    `json:"verdict"` // "" = it was not run
	Failed     []string  `json:"failed,omitempty"`
	Seed       uint64    `json:"seed"`
	Began      time.Time `json:"began"`
	Took       string    `json:"took"`
	Processors int       `json:"processors"`
	Go         string    `json:"go"`
}

func (n *note) green() bool { return n.Verdict == verdictGreen }

func (n *note) String() string {
	if n.Verdict == "" {
		return "not run"
	}
	text := fmt.Sprintf("%s in %s, seed %d", n.Verdict, n.Took, n.Seed)
	if len(n.Failed) > 0 {
		text += "; failed: " + strings.Join(n.Failed, "; ")
	}
	return text
}

// notes reads and writes the notes about a tree.
type notes struct{ tree, dir string }

func notesOf(tree string) notes { return notes{tree, filepath.Join(folder, tree)} }

func (n notes) log(part string) string { return filepath.Join(n.dir, part+".log") }

func (n notes) file(part string) string { return filepath.Join(n.dir, part+".json") }

// read returns what is noted of a part; one that was not run has no verdict.
func (n notes) read(part string) (*note, error) {
	text, err := os.ReadFile(n.file(part))
	if errors.Is(err, fs.ErrNotExist) {
		return &note{}, nil
	}
	if err != nil {
		return nil, err
	}
	var got note
	if err := json.Unmarshal(text, &got); err != nil {
		return nil, fmt.Errorf("read %s: %w", n.file(part), err)
	}
	return &got, nil
}

// make runs a part for so long at most, with its output in its log, and notes what it came to.
func (n notes) make(ctx context.Context, p *part, seed uint64, most time.Duration) (_ *note, err error) {
	if err := os.MkdirAll(n.dir, 0o750); err != nil {
		return nil, err
	}
	log, err := os.Create(n.log(p.name))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	made := &note{
		Part:       p.name,
		Tree:       n.tree,
		Verdict:    verdictGreen,
		Seed:       seed,
		Began:      time.Now().UTC().Truncate(time.Second),
		Processors: runtime.NumCPU(),
		Go:         runtime.Version(),
	}
	dir, err := os.MkdirTemp("", "proof-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	environment := append(os.Environ(), "DIR="+dir, fmt.Sprint("SEED=", seed), fmt.Sprint("RAPID_SEED=", seed))
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for _, command := range p.commands {
		fmt.Fprintf(log, "$ %s\n", command)
		if failed := shell(within, command, environment, log); failed != nil {
			if within.Err() != nil {
				failed = fmt.Errorf("no part may take longer than %s: %w", most, failed)
			}
			made.Verdict, made.Failed = verdictRed, append(made.Failed, fmt.Sprintf("%s: %v", command, failed))
			fmt.Fprintf(log, "failed: %v\n", failed)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	made.Took = time.Since(made.Began).Round(time.Second).String()
	text, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return nil, err
	}
	return made, os.WriteFile(n.file(p.name), append(text, '\n'), 0o600)
}

// shell runs a command. At the end of ctx everything that it has started and that stayed in its group ends too.
func shell(ctx context.Context, command string, environment []string, log *os.File) error {
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.Stdout, c.Stderr = log, log
	c.Env = environment
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c.Run()
}
