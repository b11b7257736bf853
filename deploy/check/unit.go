package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// standIns keep the commands at the head of the unit below another root, where they own files as another user.
const standIns = `set -e
sudo() { "$@"; }
useradd() { command useradd --prefix "$ROOT" "$@"; }
systemctl() { test "$1 $2" = "enable --now"; command systemctl --root="$ROOT" enable "$3"; }
install() {
	last=
	for word; do
		shift
		case $last,$word in
			-o,* | -g,*) set -- "$@" "$OWNER" ;;
			*,/*) set -- "$@" "$ROOT$word" ;;
			*) set -- "$@" "$word" ;;
		esac
		last=$word
	done
	command install "$@"
}
`

// install does below a root what stands at the head of the unit.
func (w *world) install(ctx context.Context, unit, root string, owner int) error {
	place := filepath.Join(w.dir, "beside-the-unit")
	for from, to := range map[string]string{
		filepath.Join(w.bin, "taskledger"):                     "taskledger",
		filepath.Join(deploy, "systemd", "node.yaml"):          "node.yaml",
		filepath.Join(deploy, "systemd", "taskledger.service"): "taskledger.service",
		filepath.Join(w.deploy, "compose", "certs", "client"):  "certs/client",
	} {
		if err := copyTree(from, filepath.Join(place, to), nil); err != nil {
			return err
		}
	}
	for _, name := range []string{"passwd", "group"} {
		if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, "etc", name), nil, 0o644); err != nil {
			return err
		}
	}
	script := standIns
	for line := range strings.Lines(unit) {
		if command, is := strings.CutPrefix(line, "#     "); is {
			script += command
		}
	}
	c := exec.CommandContext(ctx, "sh", "-c", script)
	c.Dir, c.Env = place, append(os.Environ(), "ROOT="+root, "OWNER="+strconv.Itoa(owner))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("what stands at the head of the unit: %w\n%s", err, out)
	}
	users, err := os.ReadFile(filepath.Join(root, "etc", "passwd"))
	if err == nil && !bytes.HasPrefix(users, []byte("taskledger:")) {
		err = fmt.Errorf("the users are %q, want taskledger", users)
	}
	return err
}

// installed is the process of the unit, installed as the unit says, with other addresses in its settings.
func (w *world) installed(ctx context.Context) (*process, error) {
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
	if err := w.install(ctx, string(text), p.root, p.user); err != nil {
		return nil, err
	}
	state := filepath.Join(p.root, "var", "lib", says["StateDirectory"])
	if err := own(state, p.user, p.group, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(p.root, "etc", "taskledger", "node.yaml")
	settings, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	here, err := w.addresses.replaced(p.name, string(settings))
	if err != nil {
		return nil, err
	}
	return p, os.WriteFile(file, []byte(here), 0o644)
}
