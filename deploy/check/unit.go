package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/unit"
)

// verifyUnit verifies the unit with a program where the installed one would be.
func verifyUnit(ctx context.Context, dir string) error {
	text, err := os.ReadFile(filepath.Join(deploy, "systemd", "taskledger.service"))
	if err != nil {
		return err
	}
	program, err := exec.LookPath("true")
	if err != nil {
		return err
	}
	text = bytes.ReplaceAll(text, []byte("/usr/local/bin/taskledger"), []byte(program))
	text = bytes.ReplaceAll(text, []byte("User=taskledger"), []byte("User=root"))
	path := filepath.Join(dir, "taskledger.service")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "systemd-analyze", "verify", "--man=no", path).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte(path)) {
		return fmt.Errorf("systemd-analyze verify: %w\n%s", err, out)
	}
	return nil
}

// installed is the process of the unit, with settings that stand where the unit looks for them.
func (w *world) installed(settings string) (*process, error) {
	text, err := os.ReadFile(filepath.Join(deploy, "systemd", "taskledger.service"))
	if err != nil {
		return nil, err
	}
	options, err := systemd.DeserializeOptions(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	says := map[string]string{}
	for _, o := range options {
		says[o.Name] = o.Value
	}
	stop, err := time.ParseDuration(says["TimeoutStopSec"])
	if err != nil {
		return nil, fmt.Errorf("TimeoutStopSec: %w", err)
	}
	p := &process{
		name:   "unit",
		args:   strings.Fields(says["ExecStart"]),
		before: strings.Fields(says["ExecStartPre"]),
		user:   w.image.user, // any that is not root
		group:  w.image.user,
		dir:    "/",
		stop:   stop,
		root:   filepath.Join(w.dir, "unit"),
	}
	health := append([]string{p.args[0], "health"}, p.args[2:]...)
	p.probes = []probe{{command: health, timeout: timeout, within: timeout}} // the unit has none
	if err := link(filepath.Join(w.bin, "taskledger"), filepath.Join(p.root, p.args[0])); err != nil {
		return nil, err
	}
	if err := copyTree(w.secrets(), filepath.Join(p.root, "tls"), nil); err != nil {
		return nil, err
	}
	state := filepath.Join(p.root, "var", "lib", says["StateDirectory"])
	if err := own(state, p.user, p.group, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(p.root, "etc", "taskledger", "node.yaml")
	if err := own(filepath.Dir(file), 0, 0, 0o755); err != nil {
		return nil, err
	}
	return p, os.WriteFile(file, []byte(settings), 0o644)
}
