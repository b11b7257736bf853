package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// timeout bounds how long a process may take until it is ready where no file says so: a busy machine needs a minute.
const timeout = 3 * time.Minute

// process is one that a file of deploy describes. Its paths are those that it sees itself.
type process struct {
	name   string
	args   []string // the program first
	before []string // a command that must succeed first; none = nothing
	env    []string // NAME=value, and nothing else
	user   int
	group  int
	dir    string
	probes []probe       // each must pass while it runs
	stop   time.Duration // from SIGTERM until the file lets it be killed
	first  bool          // it is the first process of its namespace

	root    string // what it sees as /
	running *exec.Cmd
	ended   chan error
	log     bytes.Buffer
}

// probe asks a process how it is: by a command, or by a path of HTTPS at an address.
type probe struct {
	command []string
	url     string
	timeout time.Duration // an answer that takes longer is none
	within  time.Duration // whoever asks gives the process up when it did not pass for so long
}

// command runs a program as the process would.
func (p *process) command(ctx context.Context, args []string) *exec.Cmd {
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.Path, c.Err = args[0], nil // it is looked up below root
	if !strings.HasPrefix(args[0], "/") {
		c.Path = filepath.Join(programs, args[0])
	}
	c.Env, c.Dir = p.env, p.dir
	c.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     p.root,
		Credential: &syscall.Credential{Uid: uint32(p.user), Gid: uint32(p.group)},
	}
	return c
}

func (p *process) start(ctx context.Context) error {
	if err := p.layHosts(); err != nil {
		return err
	}
	if len(p.before) > 0 {
		if out, err := p.command(ctx, p.before).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %s: %w\n%s", p.name, strings.Join(p.before, " "), err, out)
		}
	}
	c := p.command(context.WithoutCancel(ctx), p.args)
	if p.first {
		c.Path, c.Args, c.Dir = self, entering(p, c.Path), ""
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	}
	c.Stdout, c.Stderr = &p.log, &p.log
	if err := c.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	p.running, p.ended = c, ended
	return nil
}

// layHosts writes the file that every container is given.
func (p *process) layHosts() error {
	folder := filepath.Join(p.root, "etc")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "hosts"), []byte("127.0.0.1 localhost\n"), 0o644)
}

// awaitReady waits until all probes pass, each within the time that its file gives it.
func (p *process) awaitReady(ctx context.Context) error {
	for _, asks := range p.probes {
		if err := p.awaitPass(ctx, asks); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) awaitPass(ctx context.Context, asks probe) error {
	ctx, cancel := context.WithTimeout(ctx, asks.within)
	defer cancel()
	var says error // the probe that was not cut off
	for {
		err := p.ask(ctx, asks)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || says == nil {
			says = err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case end := <-p.ended:
			p.ended <- end
			return fmt.Errorf("%s has ended: %v\n%s", p.name, end, p.log.Bytes())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s: %w", p.name, asks.within, says)
		}
	}
}

func (p *process) ask(ctx context.Context, asks probe) error {
	ctx, cancel := context.WithTimeout(ctx, asks.timeout)
	defer cancel()
	if len(asks.command) > 0 {
		if out, err := p.command(ctx, asks.command).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(asks.command, " "), err, out)
		}
		return nil
	}
	// A kubelet does not check the certificate either.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, asks.url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // it only explains the status
		return fmt.Errorf("%s: %s: %s", asks.url, answer.Status, text)
	}
	return nil
}

// end ends the process in order, and kills it after the time that the file gives it.
func (p *process) end() error {
	if p.running == nil {
		return nil
	}
	defer func() { p.running = nil }()
	failed := p.running.Process.Signal(syscall.SIGTERM)
	if errors.Is(failed, os.ErrProcessDone) {
		failed = fmt.Errorf("it had ended")
	}
	select {
	case err := <-p.ended:
		failed = errors.Join(failed, err)
	case <-time.After(p.stop):
		failed = errors.Join(fmt.Errorf("it runs %s after SIGTERM, and is killed then", p.stop), p.running.Process.Kill())
		<-p.ended
	}
	if failed != nil {
		return fmt.Errorf("end %s: %w\n%s", p.name, failed, p.log.Bytes())
	}
	return nil
}

// startAll starts processes side by side, and waits until each is ready.
func startAll(ctx context.Context, all []*process) error {
	for _, p := range all {
		if err := p.start(ctx); err != nil {
			return err
		}
	}
	for _, p := range all {
		if err := p.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// endAll ends processes one after the other, the last one first.
func endAll(all []*process) error {
	var failed []error
	for _, p := range slices.Backward(all) {
		failed = append(failed, p.end())
	}
	return errors.Join(failed...)
}

// own makes a folder that a user owns.
func own(path string, user, group int, mode fs.FileMode) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	return errors.Join(os.Chown(path, user, group), os.Chmod(path, mode)) // an umask keeps MkdirAll from it
}

// copyTree copies a file, or a folder, with owners and modes. Texts are changed on the way, unless change is nil.
func copyTree(from, to string, change func(text string) (string, error)) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at, as := filepath.Join(to, below), info.Sys().(*syscall.Stat_t)
		if d.IsDir() {
			return own(at, int(as.Uid), int(as.Gid), info.Mode().Perm())
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if change != nil {
			changed, err := change(string(text))
			if err != nil {
				return err
			}
			text = []byte(changed)
		}
		if err := os.WriteFile(at, text, 0o600); err != nil {
			return err
		}
		return errors.Join(os.Chown(at, int(as.Uid), int(as.Gid)), os.Chmod(at, info.Mode().Perm()))
	})
}
