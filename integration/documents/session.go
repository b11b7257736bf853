package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// stopNodes is a line that stops the nodes of a session.
const stopNodes = "# stop the nodes"

// session is somebody who types what a guide says, in a directory of their own.
type session struct {
	dir    string
	env    []string
	stand  []string // pairs: an address or folder of guides, which may not be had here, and what stands for it
	nodes  []*exec.Cmd
	beside []*running
}

// running is a command that others are typed beside.
type running struct {
	line string
	cmd  *exec.Cmd
	said bytes.Buffer
}

func newSession(dir, binary string) (*session, error) {
	s := &session{
		dir: dir,
		env: append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")),
	}
	for _, port := range []string{"7400", "8048", "9464"} {
		address, err := freeAddress()
		if err != nil {
			return nil, err
		}
		s.stand = append(s.stand, "127.0.0.1:"+port, address)
	}
	for _, folder := range []string{"/var/", "/srv/", "/mnt/", "/tmp/"} {
		s.stand = append(s.stand, folder, dir+"/root"+folder)
	}
	return s, errors.Join(
		os.MkdirAll(filepath.Join(dir, "root", "var", "lib"), 0o700),
		os.MkdirAll(filepath.Join(dir, "root", "tmp"), 0o700),
		os.Symlink(binary, programIn(dir)),
	)
}

// freeAddress returns an address that nobody listens at now. Its port is below those that the system gives to
// connections.
func freeAddress() (string, error) {
	var failed error
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
		failed = err
	}
	return "", failed
}

func (s *session) replaced(line string) string { return strings.NewReplacer(s.stand...).Replace(line) }

// comment matches the end of a line that says something to its reader.
var comment = regexp.MustCompile(`\s{2,}# .*$`)

// elsewhere says in a comment that the command is typed while the one before it runs.
const elsewhere = "in another terminal"

// typesAll types one line after the other.
func (s *session) typesAll(lines []string) error {
	for i, line := range lines {
		do := s.types
		if i+1 < len(lines) && strings.Contains(comment.FindString(lines[i+1]), elsewhere) {
			do = s.begins
		}
		err := do(line)
		for began := time.Now(); unavailable(err) && time.Since(began) < starts; err = do(line) { // a person types later
			time.Sleep(time.Second)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return s.awaits()
}

// starts bounds the time that a command takes to start which others are typed beside.
const starts = 30 * time.Second

// unavailable reports whether a command has ended with the exit code for what is not there yet.
func unavailable(err error) bool {
	failed, is := errors.AsType[*exec.ExitError](err)
	return is && failed.ExitCode() == 4
}

// types runs a line of a guide. If the line makes a token, later lines find it in TOKEN, and as a header in the file
// AUTH.
func (s *session) types(line string) error {
	if line == stopNodes {
		return s.stop()
	}
	command, arguments, serves := s.read(line)
	if serves {
		return s.serve("serve" + arguments)
	}
	cmd := s.bash(command)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%w: %s%s", err, out, said.String())
	}
	if strings.Contains(command, "curl") && strings.Contains(string(out), `"type":`) { // curl ends well also with a problem
		return fmt.Errorf("it is answered with %s", out)
	}
	if strings.Contains(comment.FindString(line), "prints the token") {
		return s.hasToken(strings.TrimSpace(string(out)))
	}
	return nil
}

// read returns the command of a line, without its comment, and the arguments of a node if it starts one.
func (s *session) read(line string) (command, arguments string, serves bool) {
	command = comment.ReplaceAllString(line, "")
	arguments, serves = strings.CutPrefix(strings.TrimPrefix(command, "./"), "taskledger serve")
	return s.replaced(command), arguments, serves
}

func (s *session) bash(command string) *exec.Cmd {
	cmd := exec.Command("bash", "-euc", command)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// begins runs a line while others are typed.
func (s *session) begins(line string) error {
	command, _, serves := s.read(line)
	if serves {
		return s.types(line)
	}
	r := &running{line: line, cmd: s.bash(command)}
	r.cmd.Stdout, r.cmd.Stderr = &r.said, &r.said
	if err := r.cmd.Start(); err != nil {
		return err
	}
	s.beside = append(s.beside, r)
	return nil
}

// awaits waits for the end of the commands that others were typed beside.
func (s *session) awaits() error {
	var failed []error
	for _, r := range s.beside {
		if err := r.cmd.Wait(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w: %s", r.line, err, r.said.String()))
		}
	}
	s.beside = nil
	return errors.Join(failed...)
}

func (s *session) hasToken(token string) error {
	file := filepath.Join(s.dir, "header")
	s.env = append(s.env, "TOKEN="+token, "AUTH="+file)
	return os.WriteFile(file, []byte("Authorization: Bearer "+token+"\n"), 0o600)
}

// serve starts a node, and returns when it is ready.
func (s *session) serve(arguments string) error {
	node, _, err := startNode(s.dir, " is ready, ", s.env, strings.Fields(s.replaced(arguments))...)
	if err != nil {
		return err
	}
	s.nodes = append(s.nodes, node)
	return s.hasTokenOfUser()
}

// advertised is what a node tells in cluster.json.
type advertised struct {
	Etcd       []string
	NATS, NKey string
	Token      string
	notThere   bool // no node tells anything
}

// advertised reads what the node on a directory tells.
func (s *session) advertised(data string) (a advertised, err error) {
	text, err := os.ReadFile(filepath.Join(s.dir, data, "cluster.json"))
	if errors.Is(err, os.ErrNotExist) {
		return advertised{notThere: true}, nil
	}
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}

// hasTokenOfUser takes the token of the user of this machine, unless another one was made.
func (s *session) hasTokenOfUser() error {
	if slices.ContainsFunc(s.env, func(v string) bool { return strings.HasPrefix(v, "TOKEN=") }) {
		return nil
	}
	a, err := s.advertised("taskledger-data")
	if err != nil || a.notThere { // the guide has its data elsewhere
		return err
	}
	if a.Token == "" {
		return errors.New("cluster.json has no token")
	}
	return s.hasToken(a.Token)
}

// hasServers runs a node beside, whose servers stand for those of the guide.
func (s *session) hasServers() error {
	if err := s.serve("serve --data servers --api off"); err != nil {
		return err
	}
	a, err := s.advertised("servers")
	if err != nil || len(a.Etcd) == 0 {
		return fmt.Errorf("no servers are told: %w", err)
	}
	s.stand = append(s.stand, "etcd-1:2379", a.Etcd[0], "nats://nats-1:4222", a.NATS)
	s.env = append(s.env, "TASKLEDGER_NATS_NKEY="+a.NKey)
	return nil
}

// stop stops the nodes in order, the last one first.
func (s *session) stop() error {
	var failed []error
	for _, n := range slices.Backward(s.nodes) {
		failed = append(failed, stopNode(n))
	}
	s.nodes = nil
	return errors.Join(failed...)
}

// end stops what still runs.
func (s *session) end() error {
	for _, r := range s.beside {
		r.cmd.Process.Kill() // it may have ended
		r.cmd.Wait()
	}
	return s.stop()
}
