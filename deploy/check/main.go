// Command check holds the files of deploy to the tools that their users have: manifests of Kubernetes are decoded
// strictly into its types, the compose file is loaded as Compose does, systemd-analyze and promtool verify unit, rules
// and scrape, NATS reads its configuration, and certs.sh makes the certificates.
//
// Then it starts what they describe, as processes of this machine: with the commands, environments, volumes, users and
// probes that stand there, below a root of their own as the image has it, as the first process of a namespace. The
// addresses alone are others, since all run on one machine. The nodes of the compose file stop and start one after the
// other under a load that counts its effects itself; each process has to end within the time that its file gives it.
// That systemd, Compose and a kubelet do what their files say is theirs to prove: they cannot run here. It is run in
// its folder:
//
//	cd deploy/check && go run .
//
// It is a module of its own, so that the project links nothing of it. Needs root, openssl, systemd-analyze and
// promtool. An image is built where there is buildah, and else the output says that none was.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
)

const deploy = ".."

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 5 && args[0] == enter:
		return become(args[1:])
	case len(args) == 2 && args[0] == apart:
		if err := raiseLoopback(); err != nil {
			return fmt.Errorf("raise loopback: %w", err)
		}
		return deployed(ctx, args[1])
	}
	dir, err := os.MkdirTemp("", "deploy")
	if err != nil {
		return err
	}
	return errors.Join(os.Chmod(dir, 0o755), check(ctx, dir), os.RemoveAll(dir)) // other users find their roots below it
}

// check makes every check, also after one has failed.
func check(ctx context.Context, dir string) error {
	var failed []error
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"kubernetes", func() error { _, err := manifests(); return err }},
		{"compose", func() error { return composeLoads(ctx) }},
		{"systemd", func() error { return verifyUnit(ctx, dir) }},
		{"prometheus", func() error { return prometheus(ctx, dir) }},
		{"certs.sh and nats.conf", func() error { return servers(ctx, dir) }},
		{"image", func() error { return buildImage(ctx, dir) }},
		{"processes", func() error { return runApart(ctx, dir) }},
	} {
		if err := c.run(); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
			continue
		}
		fmt.Println(c.name + ": as its tool wants it")
	}
	return errors.Join(failed...)
}

// tool runs a program, whose output an error holds.
func tool(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
