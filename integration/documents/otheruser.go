//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	other   = 65534 // "nobody"
	readyIn = 30 * time.Second
	secret  = "told-to-nobody" // in the parameters of a task
)

func init() { commands["otheruser"], commands["attempt"] = otherUser, attempt }

// attempt is what this program does as the other user.
func attempt(args []string) error {
	for _, done := range attempts(args[0]) {
		fmt.Println(done)
	}
	return nil
}

// otherUser shows that another user of the machine can neither read a node with the servers inside nor submit to it. It
// must run as root: it starts a node as it is, and tries everything again as user 65534. The same attempts must succeed
// once every file of the node is open to all: else they would prove nothing.
func otherUser([]string) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("must run as root, to become another user")
	}
	dir, err := os.MkdirTemp("", "other")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	self, err := copySelf(dir)
	if err != nil {
		return err
	}
	stop, err := serveSecret(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if own := attempts(dir); len(own) < 4 {
		return fmt.Errorf("the user who runs the node could do no more than: %q", own)
	}
	done, err := asOther(self, dir)
	if err != nil {
		return err
	}
	if len(done) > 0 {
		return fmt.Errorf("another user could: %s", strings.Join(done, "; "))
	}
	if err := open(dir); err != nil {
		return err
	}
	if done, err = asOther(self, dir); err != nil {
		return err
	}
	for _, what := range []string{
		"submit by socket", "get by socket", "connect to NATS with the node's key", "connect to api",
		"get over HTTP with the node's token", "post over HTTP with the node's token",
	} {
		if !slices.Contains(done, what) {
			return fmt.Errorf("with every file open another user should %s, but could only: %q", what, done)
		}
	}
	fmt.Printf("another user could neither read nor submit; once every file was open: %s\n", strings.Join(done, "; "))
	return nil
}

// copySelf makes a data directory that everybody may enter, as a careless user has, builds the node, and copies this
// program to where the other user finds it.
func copySelf(dir string) (self string, err error) {
	for path, mode := range map[string]fs.FileMode{dir: 0o755, dataIn(dir): 0o755} {
		if err := os.MkdirAll(path, mode); err != nil {
			return "", err
		}
		if err := os.Chmod(path, mode); err != nil {
			return "", err
		}
	}
	if err := buildIn(dir); err != nil {
		return "", err
	}
	me, err := os.Executable()
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(me)
	if err != nil {
		return "", err
	}
	self = filepath.Join(dir, "otheruser")
	return self, os.WriteFile(self, program, 0o755)
}

func dataIn(dir string) string { return filepath.Join(dir, "data") }

// serveSecret runs a node with a task of which something is to be kept secret.
func serveSecret(dir string) (stop func() error, err error) {
	node := exec.Command(programIn(dir), "serve", "--data", dataIn(dir), "--exec-allow", "echo")
	node.Stderr, node.Env = os.Stderr, append(os.Environ(), "TASKLEDGER_API=127.0.0.1:0")
	if err := node.Start(); err != nil {
		return nil, err
	}
	stop = func() error { return stopNode(node) }
	ctx, cancel := context.WithTimeout(context.Background(), readyIn)
	defer cancel()
	for {
		said, err := taskledger(ctx, dir, "submit", "exec", `{"program":"echo","args":["`+secret+`"]}`, "--id", "secret",
			"--wait", "--data", dataIn(dir))
		if err == nil {
			return stop, errors.Join(showPort(dir), showAPI(dir))
		}
		if ctx.Err() != nil {
			return nil, errors.Join(fmt.Errorf("no node after %s: %s", readyIn, said), stop())
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// showPort puts the port of NATS where the other user reads it: the system shows who listens where to everybody.
func showPort(dir string) error {
	port, err := os.ReadFile(filepath.Join(dataIn(dir), "nats-port"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "port"), port, 0o644)
}

// door holds the part of cluster.json about the HTTP API.
type door struct{ URL, Token string }

func doorIn(path string) (d door, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	return d, err
}

// showAPI puts the address of the HTTP API where the other user reads it, as showPort does.
func showAPI(dir string) error {
	d, err := doorIn(filepath.Join(dataIn(dir), "cluster.json"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "api"), []byte(d.URL), 0o644)
}

// asOther makes the attempts as the other user, without any group, and returns what succeeded.
func asOther(self, dir string) (done []string, err error) {
	c := exec.Command(self, "attempt", dir)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
	c.Dir, c.Env, c.Stderr = "/", []string{"HOME=/"}, os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("attempts of another user: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		done = append(done, strings.TrimSpace(line))
	}
	return done, nil
}

// attempts tries every access as the user who runs it and returns those that succeeded.
func attempts(dir string) (done []string) {
	ctx, cancel := context.WithTimeout(context.Background(), readyIn)
	defer cancel()
	_ = filepath.WalkDir(dataIn(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // a directory that is closed
		}
		if text, err := os.ReadFile(path); err == nil {
			done = append(done, fmt.Sprintf("read %d bytes of %s", len(text), d.Name()))
		}
		return nil
	})
	socket := filepath.Join(dataIn(dir), "socket", "etcd")
	for _, of := range []string{"etcd", "api"} {
		if conn, err := net.Dial("unix", filepath.Join(filepath.Dir(socket), of)); err == nil {
			conn.Close()
			done = append(done, "connect to "+of)
		}
	}
	for what, at := range map[string][]string{
		"by directory": {"--data", dataIn(dir)}, "by socket": {"--etcd", "unix:" + socket},
	} {
		for _, command := range [][]string{{"submit", "exec", `{"program":"id"}`}, {"get", "secret"}} {
			if _, err := taskledger(ctx, dir, append(append(command, "--timeout", "3s"), at...)...); err == nil {
				done = append(done, command[0]+" "+what)
			}
		}
	}
	return append(append(done, overNATS(dir)...), overHTTP(ctx, dir)...)
}

// overHTTP tries the port of the HTTP API, which everybody finds: without a token, and with the one in the data.
func overHTTP(ctx context.Context, dir string) (done []string) {
	url, err := os.ReadFile(filepath.Join(dir, "api"))
	if err != nil {
		return []string{"not find the HTTP API: " + err.Error()}
	}
	tokens := map[string]string{"without a token": ""}
	if d, err := doorIn(filepath.Join(dataIn(dir), "cluster.json")); err == nil {
		tokens["with the node's token"] = d.Token
	}
	for what, token := range tokens {
		for _, ask := range [][3]string{
			{"GET", "/v1/tasks/secret", ""}, {"POST", "/v1/tasks", `{"behavior":"exec","params":{"program":"echo"}}`},
		} {
			r, err := http.NewRequestWithContext(ctx, ask[0], string(url)+ask[1], strings.NewReader(ask[2]))
			if err != nil {
				return []string{err.Error()}
			}
			r.Header.Set("Content-Type", "application/json")
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				done = append(done, fmt.Sprintf("not be refused by the HTTP API, but: %v", err))
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusUnauthorized {
				done = append(done, strings.ToLower(ask[0])+" over HTTP "+what)
			}
		}
	}
	return done
}

// overNATS tries the port of NATS, which everybody finds: without a key, and with the one in the data.
func overNATS(dir string) (done []string) {
	port, err := os.ReadFile(filepath.Join(dir, "port"))
	if err != nil {
		return []string{"not find the port of NATS: " + err.Error()}
	}
	url := "nats://" + net.JoinHostPort("127.0.0.1", string(bytes.TrimSpace(port)))
	options := map[string]nats.Option{"without a key": nats.Name("other")}
	if sign, err := nats.NkeyOptionFromSeed(filepath.Join(dataIn(dir), "nats.nk")); err == nil {
		options["with the node's key"] = sign
	}
	for what, option := range options {
		if conn, err := nats.Connect(url, option); err == nil {
			conn.Close()
			done = append(done, "connect to NATS "+what)
		} else if !errors.Is(err, nats.ErrAuthorization) {
			done = append(done, fmt.Sprintf("not be refused by NATS, but: %v", err))
		}
	}
	return done
}

// open lets everybody read and write whatever the node keeps.
func open(dir string) error {
	return filepath.WalkDir(dataIn(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o777)
	})
}

func taskledger(ctx context.Context, dir string, args ...string) (said string, err error) {
	c := exec.CommandContext(ctx, programIn(dir), args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	return string(out), err
}
