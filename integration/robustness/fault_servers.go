package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"taskledger/integration/robustness/check"
)

const (
	// foundWithin is within what whoever has joined works again once the servers are back elsewhere: 5 s, and what processes get on top
	// that share two processors, one of which asks.
	foundWithin = 15 * time.Second
	// servesWithin bounds how long nodes with servers inside take to begin.
	servesWithin = time.Minute
)

// household is a cluster beside the one of the run: a node with servers inside, in a directory, and what others do who know it by
// that directory alone.
type household struct {
	program, dir string
	running      []*exec.Cmd
}

// begin starts a command that goes on; its log is in the directory.
func (h *household) begin(name string, args ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(h.dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own
	cmd := exec.Command(h.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h.running = append(h.running, cmd)
	return cmd, nil
}

// servers starts the node with the servers inside, which runs nothing itself.
func (h *household) servers() (*exec.Cmd, error) {
	return h.begin("servers", "serve", "--data", "data", "--name", "servers", "--slots", "0", "--ttl", ttl.String())
}

// told returns what a command prints, within a time.
func (h *household) told(ctx context.Context, within time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.program, append(args, "--data", "data", "-o", "json", "--timeout", within.String())...)
	cmd.Dir = h.dir
	out, err := cmd.Output()
	return string(out), err
}

// end ends whatever runs.
func (h *household) end() {
	for _, cmd := range h.running {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
}

// nats is where NATS listens, as the directory tells.
func (h *household) nats() (string, error) {
	var at struct{ NATS string }
	text, err := os.ReadFile(filepath.Join(h.dir, "data", "cluster.json"))
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	if err != nil {
		return "", err
	}
	u, err := url.Parse(at.NATS)
	if err != nil {
		return "", err
	}
	return u.Host, nil
}

// moveServers ends a node with servers inside as a crash does, and starts it again where somebody else has the port of its NATS: who has
// joined it, and who waits for an outcome, must find where the servers are now.
func moveServers(ctx context.Context, r *run, d disturbance) (target, proof string, err error) {
	target = "servers inside a node"
	h := &household{program: r.settings.program, dir: filepath.Join(r.dir, fmt.Sprint("household-", d.round))}
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return target, "", err
	}
	defer h.end()
	first, waiting, err := h.settle(ctx)
	if err != nil {
		return target, "", err
	}
	before, err := h.nats()
	if err != nil {
		return target, "", err
	}
	d.begins()
	_ = first.Process.Kill()
	_ = first.Wait() // it was killed
	taken, err := net.Listen("tcp", before)
	if err != nil {
		return target, "", err
	}
	defer taken.Close()
	if _, err = h.servers(); err != nil {
		return target, "", err
	}
	now := before
	if _, ok := until(ctx, servesWithin, func(context.Context) bool { now, err = h.nats(); return err == nil && now != before }); !ok {
		return target, "", errors.Join(err, ctx.Err())
	}
	began := time.Now()
	if _, err := h.told(ctx, foundWithin, "submit", "noop", "--wait"); err != nil && ctx.Err() == nil {
		r.broken(check.Ended, "the node that has joined does nothing %s after the servers are elsewhere: %v", time.Since(began), err)
	}
	took := time.Since(began)
	if err := waiting.Wait(); err != nil {
		r.broken(check.Ended, "who waited for an outcome when the servers went elsewhere is told: %v; its log ends with %q", err, lastLine(filepath.Join(h.dir, "waiting.log")))
	}
	return target, fmt.Sprintf("NATS was at %s and is at %s; the node that has joined works again after %s, and who waited was told", before, now, round(took)), nil
}

// settle starts the servers, a node that joins them, and somebody who waits for what that runs.
func (h *household) settle(ctx context.Context) (first, waiting *exec.Cmd, err error) {
	if first, err = h.servers(); err != nil {
		return nil, nil, err
	}
	said := ""
	works := func(ctx context.Context) bool {
		said, err = h.told(ctx, commandWithin, "submit", "noop", "--wait")
		return err == nil
	}
	if _, ok := until(ctx, servesWithin, func(context.Context) bool { _, err = h.nats(); return err == nil }); !ok {
		return nil, nil, fmt.Errorf("the servers do not begin: %w", err)
	}
	if _, err = h.begin("joined", "serve", "--join", "data", "--name", "joined", "--ttl", ttl.String()); err != nil {
		return nil, nil, err
	}
	if _, ok := until(ctx, servesWithin, works); !ok {
		return nil, nil, fmt.Errorf("the node that joins runs nothing: %w: %s", err, said)
	}
	if waiting, err = h.begin("waiting", "submit", "sleep", `{"duration":"5s"}`, "--id", "held", "--wait", "--data", "data", "--timeout", "1m"); err != nil {
		return nil, nil, err
	}
	runs := func(ctx context.Context) bool {
		said, err = h.told(ctx, commandWithin, "get", "held")
		return err == nil && strings.Contains(said, `"RUNNING"`)
	}
	if _, ok := until(ctx, servesWithin, runs); !ok {
		return nil, nil, fmt.Errorf("what is waited for does not run: %w: %s", err, said)
	}
	return first, waiting, nil
}
