package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// guide is a document whose commands are run.
type guide struct {
	document string
	blocks   int      // of commands, from its beginning: what follows is a test's of a package that the guide names
	node     []string // with these arguments a node serves before the first command; nil = the guide starts one itself
	settings string   // a file into which the guide's first block of YAML is written; "" = none
}

var guides = []guide{
	{document: "files.md", blocks: 1},
	{document: "operating.md", blocks: 1, node: []string{}},
	{document: "sync.md", blocks: 1, settings: "sync.yaml",
		node: []string{"--checksum-root", ".", "--sync-root", ".", "--exec-allow", "sync-meters=/bin/true"}},
	{document: "taskstore.md", blocks: 2},
	{document: "works.md", blocks: 1, node: []string{"--data", "data", "--api", "off"}},
}

// session is somebody who types what a guide says, in a directory of their own.
type session struct {
	dir       string
	env       []string
	addresses *strings.Replacer // what stands for the ports and folders of guides, which may not be had here
	nodes     []*exec.Cmd       // those that run
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
	blocks := blocksOf(string(text), "sh")
	if len(blocks) < g.blocks {
		return fmt.Errorf("%d blocks of commands, want %d", len(blocks), g.blocks)
	}
	err = errors.Join(
		os.MkdirAll(filepath.Join(dir, "var"), 0o700),
		os.Symlink(binary, programIn(dir)),
	)
	if err != nil {
		return err
	}
	if g.settings != "" {
		if err := os.WriteFile(filepath.Join(dir, g.settings), []byte(blocksOf(string(text), "yaml")[0]), 0o600); err != nil {
			return err
		}
	}
	s, err := newSession(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if g.node != nil {
		if err := s.serve("serve --api 127.0.0.1:7400 " + strings.Join(g.node, " ")); err != nil {
			return err
		}
	}
	for _, block := range blocks[:g.blocks] {
		for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", " ")) {
			if err := s.types(line); err != nil {
				return fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
			}
		}
	}
	return nil
}

func blocksOf(text, language string) (all []string) {
	for _, found := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

func newSession(dir string) (*session, error) {
	var stand []string
	for _, port := range []string{"7400", "8048"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		stand = append(stand, "127.0.0.1:"+port, l.Addr().String())
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	stand = append(stand, "/var/lib/", dir+"/var/")
	return &session{
		dir:       dir,
		env:       append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")),
		addresses: strings.NewReplacer(stand...),
	}, nil
}

// types runs a line of a guide. If the line makes a token, later lines find it in TOKEN, and as a header in the file
// AUTH.
func (s *session) types(line string) error {
	line, comment, _ := strings.Cut(line, "    #")
	line = s.addresses.Replace(strings.TrimSpace(line))
	if arguments, serves := strings.CutPrefix(line, "taskledger serve"); serves {
		return s.serve("serve" + arguments)
	}
	cmd := exec.Command("bash", "-euc", line)
	cmd.Dir, cmd.Env = s.dir, s.env
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w: %s%s", err, out, said.String())
	}
	if strings.Contains(line, "curl") && strings.Contains(string(out), `"type":`) { // curl ends well also with a problem
		return fmt.Errorf("it is answered with %s", out)
	}
	if strings.Contains(comment, "prints the token") {
		return s.hasToken(strings.TrimSpace(string(out)))
	}
	return nil
}

func (s *session) hasToken(token string) error {
	file := filepath.Join(s.dir, "header")
	s.env = append(s.env, "TOKEN="+token, "AUTH="+file)
	return os.WriteFile(file, []byte("Authorization: Bearer "+token+"\n"), 0o600)
}

// serve starts a node, and returns when it is ready.
func (s *session) serve(arguments string) error {
	node, _, err := startNode(s.dir, " is ready, ", s.env, strings.Fields(s.addresses.Replace(arguments))...)
	if err != nil {
		return err
	}
	s.nodes = append(s.nodes, node)
	return s.hasTokenOfUser()
}

// hasTokenOfUser takes the token of the user of this machine, unless another one was made.
func (s *session) hasTokenOfUser() error {
	if slices.ContainsFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "TOKEN=") }) {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "taskledger-data", "cluster.json"))
	if errors.Is(err, os.ErrNotExist) { // the guide has its data elsewhere
		return nil
	}
	if err != nil {
		return err
	}
	token := regexp.MustCompile(`"token": *"([^"]+)"`).FindSubmatch(text)
	if token == nil {
		return errors.New("cluster.json has no token")
	}
	return s.hasToken(string(token[1]))
}

// end stops the nodes, the last one first.
func (s *session) end() error {
	var failed []error
	for _, n := range slices.Backward(s.nodes) {
		failed = append(failed, stopNode(n))
	}
	return errors.Join(failed...)
}
