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

// guide is a document whose commands are run.
type guide struct {
	document string
	blocks   []int    // of commands, counted from 0: tests of packages run the others
	indented bool     // the commands are lines that are indented, instead
	node     []string // with these arguments a node serves before the first command; nil = the guide starts one itself
	servers  bool     // etcd-1 and nats-1 lead to the servers inside a node that runs beside
	before   []string // lines that are typed first: they make what the guide takes for granted
	programs []string // of operators, which tools/operator/go.mod pins
	settings string   // a file into which the guide's first block of YAML is written; "" = none
}

var guides = []guide{
	{document: "backup.md", indented: true,
		before: []string{"taskledger serve", "taskledger submit noop --wait", stopNodes, "mkdir -p /var/backups/taskledger"}},
	{
		document: "completions.md",
		blocks:   []int{0},
		node:     []string{},
		programs: []string{"nats"},
	},
	{document: "deploying.md", blocks: []int{0}, servers: true},
	{document: "files.md", blocks: []int{0}},
	{document: "operating.md", blocks: []int{0}, node: []string{}},
	{document: "schedules.md", blocks: []int{0}, node: []string{}},
	{
		document: "sync.md",
		blocks:   []int{0},
		settings: "sync.yaml",
		node:     []string{"--checksum-root", ".", "--sync-root", ".", "--exec-allow", "sync-meters=/bin/true"},
	},
	{document: "taskstore.md", blocks: []int{0, 1}},
	{
		document: "testing.md",
		blocks:   []int{0},
		node:     []string{},
		before:   []string{"mkdir testdata", "taskledger submit noop --id resize-7 --wait"},
	},
	{document: "upgrading.md", blocks: []int{0}, node: []string{}},
	{
		document: "works.md",
		blocks:   []int{1, 2},
		node:     []string{"--data", "data", "--api", "off"},
		before:   []string{"mkdir -p /srv/photos /mnt/photos", "touch /srv/photos/first.jpg"},
	},
}

// operatorPrograms are packages that tools/operator/go.mod pins, by the name of the program that is built.
var operatorPrograms = map[string]string{
	"nats": "github.com/nats-io/natscli/nats",
}

// runGuides runs them one after the other, with the program that dir has.
func runGuides(dir string) error {
	for _, g := range guides {
		if err := g.run(filepath.Join(dir, "guide-"+g.document), programIn(dir)); err != nil {
			return fmt.Errorf("docs/%s: %w", g.document, err)
		}
	}
	fmt.Printf("the commands of %d guides do what they say\n", len(guides))
	return nil
}

func (g *guide) run(dir, binary string) (err error) {
	text, err := os.ReadFile(filepath.Join("docs", g.document))
	if err != nil {
		return err
	}
	typed, err := g.commands(string(text))
	if err != nil {
		return err
	}
	s, err := newSession(dir, binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := g.prepare(s, string(text)); err != nil {
		return err
	}
	for _, lines := range typed {
		if err := s.typesAll(lines); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes what the guide needs before its first command.
func (g *guide) prepare(s *session, text string) error {
	for _, name := range g.programs {
		build := exec.Command("go", "build", "-C", "tools/operator", "-o", filepath.Join(s.dir, name), operatorPrograms[name])
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w: %s", name, err, out)
		}
	}
	if g.settings != "" {
		if err := os.WriteFile(filepath.Join(s.dir, g.settings), []byte(blocksOf(text, "yaml")[0]), 0o600); err != nil {
			return err
		}
	}
	if g.node != nil {
		if err := s.serve("serve --api 127.0.0.1:7400 " + strings.Join(g.node, " ")); err != nil {
			return err
		}
	}
	if g.servers {
		if err := s.hasServers(); err != nil {
			return err
		}
	}
	return s.typesAll(g.before)
}

// commands returns the lines of each block that is run.
func (g *guide) commands(text string) (all [][]string, err error) {
	if g.indented {
		var lines []string
		for _, found := range indented.FindAllStringSubmatch(text, -1) {
			lines = append(lines, found[1])
		}
		return [][]string{lines}, nil
	}
	blocks := blocksOf(text, "sh")
	for _, i := range g.blocks {
		if i >= len(blocks) {
			return nil, fmt.Errorf("%d blocks of commands, want more than %d", len(blocks), i)
		}
		all = append(all, linesOf(blocks[i]))
	}
	return all, nil
}

// indented matches a command that is a line of its own, without a fence.
var indented = regexp.MustCompile(`(?m)^    ((?:\./)?taskledger .*)$`)

func blocksOf(text, language string) (all []string) {
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

// linesOf returns the commands of a block: what a backslash continues is one.
func linesOf(block string) (lines []string) {
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}
